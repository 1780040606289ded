//! Collations: how the strings of a part compare. The numbers are those of Tarantool's
//! `_collation`.
//!
//! The Unicode Collation Algorithm comes from ICU4X, with the data of CLDR that its release has.
//! Tarantool uses the ICU of its system, whose data may be of another release.
//!
//! Equal strings have equal sort keys, and sort keys are in the order of the strings: so they are
//! what hashes and hints are made of.

use icu_collator::options::{CollatorOptions, Strength};
use icu_collator::{CollatorBorrowed, CollatorPreferences};
use icu_locale_core::Locale;
use smallvec::SmallVec;
use std::cmp::Ordering;
use std::fmt;
use std::sync::OnceLock;

/// The bytes by which strings compare.
pub type SortKey = SmallVec<[u8; 64]>;

/// How strings of a part compare.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Collation {
    /// By bytes; no collation was named.
    None,
    /// By bytes.
    Binary,
    /// By the Unicode Collation Algorithm.
    Unicode(Unicode),
}

/// A collation of the Unicode Collation Algorithm: a locale and a strength.
#[derive(Clone, Copy)]
pub struct Unicode {
    id: u16,
    collator: &'static CollatorBorrowed<'static>,
}

/// The locales of `_collation` in its order: from number 4 on, each has three strengths.
const LOCALES: [&str; 91] = [
    "af",
    "am",
    "ar",
    "as",
    "az",
    "be",
    "bn",
    "bs",
    "bs-Cyrl",
    "ca",
    "cs",
    "cy",
    "da",
    "de-DE-u-co-phonebk",
    "de-AT-u-co-phonebk",
    "dsb",
    "ee",
    "eo",
    "es",
    "es-u-co-trad",
    "et",
    "fa",
    "fi",
    "fi-u-co-phonebk",
    "fil",
    "fo",
    "fr-CA",
    "gu",
    "ha",
    "haw",
    "he",
    "hi",
    "hr",
    "hu",
    "hy",
    "ig",
    "is",
    "ja",
    "kk",
    "kl",
    "kn",
    "ko",
    "kok",
    "ky",
    "lkt",
    "ln",
    "lt",
    "lv",
    "mk",
    "ml",
    "mr",
    "mt",
    "nb",
    "nn",
    "nso",
    "om",
    "or",
    "pa",
    "pl",
    "ro",
    "sa",
    "se",
    "si",
    "si-u-co-dict",
    "sk",
    "sl",
    "sq",
    "sr",
    "sr-Latn",
    "sv",
    "sv-u-co-reformed",
    "ta",
    "te",
    "th",
    "tn",
    "to",
    "tr",
    "ug",
    "uk",
    "ur",
    "vi",
    "vo",
    "wae",
    "wo",
    "yo",
    "zh",
    "zh-u-co-big5han",
    "zh-u-co-gb2312",
    "zh-u-co-pinyin",
    "zh-u-co-stroke",
    "zh-u-co-zhuyin",
];

/// ICU4X has no data of these. It would take the root's order, which is another one.
const WITHOUT_DATA: [&str; 8] =
    ["haw", "kl", "lkt", "nso", "se", "tn", "zh-u-co-big5han", "zh-u-co-gb2312"];

const COUNT: usize = 4 + 3 * LOCALES.len();

impl Collation {
    /// The collation with Tarantool's number in `_collation`, if there is an implementation.
    pub fn of_id(id: u64) -> Option<Collation> {
        match id {
            0 => Some(Collation::None),
            3 => Some(Collation::Binary),
            _ => Unicode::of_id(u16::try_from(id).ok()?).map(Collation::Unicode),
        }
    }

    /// Whether `_collation` has this number.
    pub fn is_known(id: u64) -> bool {
        id < COUNT as u64
    }

    /// Whether strings that are not the same are never equal.
    pub fn is_strict(self) -> bool {
        !matches!(self, Collation::Unicode(_))
    }
}

impl Unicode {
    fn of_id(id: u16) -> Option<Unicode> {
        static COLLATORS: [OnceLock<Option<CollatorBorrowed<'static>>>; COUNT] =
            [const { OnceLock::new() }; COUNT];
        let collator = COLLATORS.get(usize::from(id))?;
        let collator = collator.get_or_init(|| new_collator(id)).as_ref()?;
        Some(Unicode { id, collator })
    }

    /// Its number in `_collation`.
    pub fn id(self) -> u32 {
        self.id.into()
    }

    /// Compares two strings.
    pub fn compare(self, a: &[u8], b: &[u8]) -> Ordering {
        self.collator.compare_utf8(a, b)
    }

    /// The bytes by which a string compares with others.
    pub fn sort_key(self, string: &[u8]) -> SortKey {
        let mut key = SortKey::new();
        let Ok(()) = self.collator.write_sort_key_utf8_to(string, &mut key);
        key
    }
}

fn new_collator(id: u16) -> Option<CollatorBorrowed<'static>> {
    let (locale, strength) = match id {
        1 => ("und", Strength::Tertiary),
        2 => ("und", Strength::Primary),
        _ => {
            let at = usize::from(id).checked_sub(4)?;
            let strengths = [Strength::Primary, Strength::Secondary, Strength::Tertiary];
            (*LOCALES.get(at / 3)?, strengths[at % 3])
        }
    };
    if WITHOUT_DATA.contains(&locale) {
        return None;
    }
    let locale: Locale = locale.parse().ok()?;
    let mut options = CollatorOptions::default();
    options.strength = Some(strength);
    CollatorBorrowed::try_new(CollatorPreferences::from(&locale), options).ok()
}

impl PartialEq for Unicode {
    fn eq(&self, other: &Unicode) -> bool {
        self.id == other.id
    }
}

impl Eq for Unicode {}

impl fmt::Debug for Unicode {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}", self.id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What Tarantool 2.6 with ICU 72 made of strings. First the strings, one a line, in
    /// hexadecimal. Then each collation with the order: the strings' numbers, in groups of equal
    /// ones; or their hash.
    const RECORDED: &str = include_str!("tests/collations.txt");
    /// These locales order differently since a later CLDR.
    const CHANGED: [&str; 3] = ["kok", "lv", "mr"];

    fn order(unicode: Unicode, strings: &[Vec<u8>]) -> String {
        let mut all: Vec<usize> = (0..strings.len()).collect();
        let compare = |a: usize, b: usize| unicode.compare(&strings[a], &strings[b]);
        all.sort_by(|a, b| compare(*a, *b));
        let groups = all
            .chunk_by(|a, b| compare(*a, *b).is_eq())
            .map(|group| group.iter().map(usize::to_string).collect::<Vec<_>>().join(" "));
        groups.collect::<Vec<_>>().join(",")
    }

    /// FNV-1a.
    fn hash(text: &str) -> u64 {
        text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        })
    }

    #[test]
    fn strings_order_as_in_tarantool() {
        let (strings, orders) = RECORDED.split_once("\n\n").expect("two sections");
        let of_line = |line: &str| -> Vec<u8> {
            let byte = |at| u8::from_str_radix(&line[at..at + 2], 16).expect("two digits");
            if line == "-" { Vec::new() } else { (0..line.len()).step_by(2).map(byte).collect() }
        };
        let strings: Vec<Vec<u8>> = strings.lines().map(of_line).collect();
        let mut compared = 0;
        for line in orders.lines() {
            let (id, recorded) = line.split_once(':').expect("a number");
            let id: u64 = id.parse().expect("a number");
            let locale = id.checked_sub(4).map_or("und", |at| LOCALES[at as usize / 3]);
            let Some(Collation::Unicode(unicode)) = Collation::of_id(id) else {
                assert!(WITHOUT_DATA.contains(&locale), "{locale}");
                continue;
            };
            let mut found = order(unicode, &strings);
            if recorded.starts_with('#') {
                found = format!("#{:016x}", hash(&found));
            }
            assert_eq!(found == recorded, !CHANGED.contains(&locale), "{id} {locale} {found}");
            compared += 1;
        }
        assert_eq!(compared, COUNT - 2 - 3 * WITHOUT_DATA.len());
        assert_eq!(Collation::of_id(COUNT as u64), None);
    }

    #[test]
    fn sort_keys_order_as_strings_do() {
        let strings = ["", "a", "A", "á", "a\u{301}", "ab", "a b", "B", "ß", "ss", "ч", "東"];
        for id in [1, 2, 4, 42, 61, 100, 250] {
            let Some(Collation::Unicode(unicode)) = Collation::of_id(id) else { panic!("{id}") };
            for (a, b) in strings.iter().flat_map(|a| strings.iter().map(move |b| (a, b))) {
                let (a, b) = (a.as_bytes(), b.as_bytes());
                assert_eq!(unicode.sort_key(a).cmp(&unicode.sort_key(b)), unicode.compare(a, b));
            }
        }
        let Some(Collation::Unicode(unicode)) = Collation::of_id(2) else { panic!("unicode_ci") };
        assert!(unicode.compare(b"\xff", "\u{fffd}".as_bytes()).is_eq(), "damaged UTF-8");
    }
}
