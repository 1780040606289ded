//! Where one system is first, where it is not, and where nothing is known yet: one sentence each
//! over a whole run. The reader's first question.

use super::line::Line;
use super::number::times;
use super::standing::{Standing, Verdict};
use crate::results::{PartResult, WorkResult};

/// The system that a report is about.
pub const OURS: &str = "ladon";

/// What is said of a system in one comparison.
#[derive(Clone, Debug, PartialEq)]
enum Place {
    /// It wins by this, or at least by this; counts have no ratio.
    First(Option<f64>, bool),
    /// Another is ahead by this.
    Behind(String, Option<f64>),
    /// Level with the first.
    Level,
    /// The intervals are too wide.
    Undecided,
    /// It was not measured.
    Absent,
}

/// A sentence: what is claimed, and of which works.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sentence {
    /// One word: `first`, `behind`, `level`, `undecided`, `absent`.
    pub tag: &'static str,
    /// What is claimed, without an end.
    pub claim: String,
    /// Name of a work, its title, and what of it.
    pub works: Vec<(String, String, String)>,
}

impl Sentence {
    /// As one line of text.
    #[must_use]
    pub fn text(&self) -> String {
        let of = |(_, title, what): &(String, String, String)| {
            if what.is_empty() { title.clone() } else { format!("{title} ({what})") }
        };
        let works: Vec<String> = self.works.iter().map(of).collect();
        format!("{}: {}.", self.claim, works.join("; "))
    }
}

/// The comparisons of a run, as one system sees them.
#[derive(Debug, Default)]
pub struct Answer {
    /// The system's name with its version, once it was seen.
    label: Option<String>,
    /// Work's name and title, part's name, with its promise where it was compared at several, and
    /// the place.
    seen: Vec<(String, String, String, Place)>,
}

impl Answer {
    /// Takes one comparison in.
    pub fn add(
        &mut self,
        work: &WorkResult,
        part: &PartResult,
        lines: &[Line<'_>],
        standing: &Standing,
        one_of_several: bool,
    ) {
        if standing.verdict == Verdict::Alone {
            return;
        }
        if let Some(line) = lines.iter().find(|line| line.system == OURS && line.measured()) {
            self.label.get_or_insert_with(|| line.label.clone());
        }
        let place = place(lines, standing);
        let name = if one_of_several && !standing.promise.is_empty() {
            format!("{} {}", part.part, standing.promise)
        } else {
            part.part.clone()
        };
        self.seen.push((work.work.clone(), work.title.clone(), name, place));
    }

    /// The sentences that there is anything to say in; none where the system was not measured.
    #[must_use]
    pub fn sentences(&self) -> Vec<Sentence> {
        let Some(label) = &self.label else { return Vec::new() };
        let contested = self.seen.iter().filter(|(.., place)| *place != Place::Absent).count();
        let claims: [(&'static str, Of, &str); 5] = [
            ("first", |place| matches!(place, Place::First(..)), "is first"),
            ("behind", |place| matches!(place, Place::Behind(..)), "is behind another"),
            ("level", |place| *place == Place::Level, "is level with the first, within a tenth,"),
            ("undecided", |place| *place == Place::Undecided, "is not told apart from the others"),
            ("absent", |place| *place == Place::Absent, ""),
        ];
        let sentence = |(tag, of, claim): (&'static str, Of, &str)| {
            let count = self.seen.iter().filter(|(.., place)| of(place)).count();
            let claim = match tag {
                "absent" => format!("{label} was not measured where others were"),
                _ => format!("{label} {claim} in {count} of {contested} comparisons"),
            };
            (count > 0).then(|| Sentence { tag, claim, works: self.works(of) })
        };
        claims.into_iter().filter_map(sentence).collect()
    }

    /// The works with such places, and what of them.
    fn works(&self, of: Of) -> Vec<(String, String, String)> {
        let mut works: Vec<(&str, &str, Parts<'_>)> = Vec::new();
        for (work, title, part, place) in self.seen.iter().filter(|(.., place)| of(place)) {
            match works.iter_mut().find(|(known, ..)| known == work) {
                Some((.., parts)) => parts.push((part, place)),
                None => works.push((work, title, vec![(part, place)])),
            }
        }
        let all = works.into_iter();
        all.map(|(work, title, parts)| (work.to_owned(), title.to_owned(), said(&parts))).collect()
    }
}

/// Which places a sentence is about.
type Of = fn(&Place) -> bool;

/// Parts of a work, by name, with their places.
type Parts<'a> = Vec<(&'a str, &'a Place)>;

/// As many parts are named; of more, only how many there are and from which ratio to which.
const NAMED: usize = 3;

fn said(parts: &[(&str, &Place)]) -> String {
    if parts.len() <= NAMED {
        let all = parts.iter().map(|(part, place)| match place {
            Place::First(Some(ratio), at_least) => {
                format!("{part} {}{}", if *at_least { "≥ " } else { "" }, times(*ratio))
            }
            Place::Behind(who, Some(ratio)) => format!("{part}: {who} {}", times(*ratio)),
            Place::Behind(who, None) => format!("{part}: {who}"),
            _ => (*part).to_owned(),
        });
        return all.collect::<Vec<_>>().join(", ");
    }
    let mut ratios: Vec<f64> = Vec::new();
    for (_, place) in parts {
        if let Place::First(Some(ratio), _) | Place::Behind(_, Some(ratio)) = place {
            ratios.push(*ratio);
        }
    }
    ratios.sort_by(f64::total_cmp);
    match ratios[..] {
        [least, .., most] => {
            let least = times(least);
            format!("{} parts, {} to {}", parts.len(), least.trim_end_matches('×'), times(most))
        }
        _ => format!("{} parts", parts.len()),
    }
}

fn place(lines: &[Line<'_>], standing: &Standing) -> Place {
    let ranks = &standing.ranks;
    let Some(mine) = ranks.iter().position(|rank| lines[rank.line].system == OURS) else {
        return Place::Absent;
    };
    let leader = || lines[ranks[0].line].label.clone();
    let behind = || Place::Behind(leader(), Some(ranks[mine].behind.median));
    let among = |with: &[usize]| mine == 0 || with.contains(&mine);
    match &standing.verdict {
        Verdict::Wins { ratio, at_least, .. } if mine == 0 => {
            Place::First(Some(ratio.median), *at_least)
        }
        Verdict::Wins { unjudged, .. } if unjudged.contains(&mine) => Place::Undecided,
        Verdict::Wins { .. } => behind(),
        Verdict::Ties { with, .. } if among(with) => Place::Level,
        Verdict::Open { with, .. } if among(with) => Place::Undecided,
        Verdict::Ties { .. } | Verdict::Open { .. } => behind(),
        Verdict::Counted { level: 1, .. } if mine == 0 => Place::First(None, false),
        Verdict::Counted { level, .. } if mine < *level => Place::Level,
        Verdict::Counted { .. } => Place::Behind(leader(), None),
        Verdict::Alone | Verdict::LoadLimited | Verdict::Unproven { .. } => Place::Undecided,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(places: &[(&str, &str, Place)]) -> Answer {
        let seen = places.iter().map(|(work, part, place)| {
            ((*work).to_owned(), work.to_uppercase(), (*part).to_owned(), place.clone())
        });
        Answer { label: Some("Ladon 1".to_owned()), seen: seen.collect() }
    }

    #[test]
    fn a_sentence_for_each_claim_with_its_works() {
        let first = |ratio| Place::First(Some(ratio), false);
        let all = answer(&[
            ("types", "a", first(1.5)),
            ("types", "b", first(7.0)),
            ("types", "c", first(2.0)),
            ("types", "d", first(3.0)),
            ("kv", "get", Place::First(Some(1.2), true)),
            ("kv", "set", Place::Undecided),
            ("idle", "x", Place::Behind("Tarantool".to_owned(), Some(2.7))),
            ("crash", "x", Place::Level),
            ("cluster", "set", Place::Absent),
        ]);
        let texts: Vec<String> = all.sentences().iter().map(Sentence::text).collect();
        assert_eq!(
            texts,
            [
                "Ladon 1 is first in 5 of 8 comparisons: TYPES (4 parts, 1.50 to 7.00×); KV (get ≥ 1.20×).",
                "Ladon 1 is behind another in 1 of 8 comparisons: IDLE (x: Tarantool 2.70×).",
                "Ladon 1 is level with the first, within a tenth, in 1 of 8 comparisons: CRASH (x).",
                "Ladon 1 is not told apart from the others in 1 of 8 comparisons: KV (set).",
                "Ladon 1 was not measured where others were: CLUSTER (set).",
            ]
        );
        assert!(Answer { label: None, ..all }.sentences().is_empty());
    }
}
