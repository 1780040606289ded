//! Lua 5.1's patterns, as LuaJIT reads them, with steps that are counted.
//!
//! A pattern can take longer than the universe lasts (`('a?'):rep(60)`), so the matcher asks every
//! few thousand steps whether to go on. It raises no error of Lua: what is wrong with a pattern is
//! its [`Fault`].
//!
//! A zero byte ends a pattern, as in Lua 5.1.

/// Captures of one pattern.
pub(crate) const CAPTURES_MAX: usize = 32;

/// As deep as the matcher may call itself.
const DEPTH_MAX: u32 = 200;

/// Why a match has no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Who was asked said no.
    Stopped,
    /// The pattern is wrong.
    Wrong(&'static str),
}

/// What a match asks every so many steps.
pub(crate) trait Look {
    /// Whether it may go on, and the steps until this is asked again, at least 1.
    fn may_go_on(&mut self) -> (bool, u32);
}

/// A part of the text that a pattern has captured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Captured<'a> {
    Bytes(&'a [u8]),
    /// `()`: counted from 1.
    Position(usize),
}

/// No string of Lua has more than 2^31 bytes. Small, because each match begins with an array of them.
#[derive(Clone, Copy, Debug)]
struct Capture {
    start: u32,
    length: i32,
}

/// Lengths of captures that are not bytes.
const UNFINISHED: i32 = -1;
const POSITION: i32 = -2;

/// A pattern at work on a text.
pub(crate) struct Matcher<'a, L> {
    text: &'a [u8],
    pattern: &'a [u8],
    /// Captures of the last attempt, open ones included.
    level: usize,
    depth: u32,
    /// Steps until the next look.
    pub(crate) left: u32,
    look: L,
    fault: Option<Fault>,
    captures: [Capture; CAPTURES_MAX],
}

impl<'a, L: Look> Matcher<'a, L> {
    /// `left` is the number of steps until the first look, at least 1.
    pub(crate) fn new(text: &'a [u8], pattern: &'a [u8], left: u32, look: L) -> Matcher<'a, L> {
        let end = memchr::memchr(0, pattern).unwrap_or(pattern.len());
        let captures = [Capture { start: 0, length: 0 }; CAPTURES_MAX];
        let (pattern, left) = (&pattern[..end], left.max(1));
        Matcher { text, pattern, level: 0, depth: 0, left, look, fault: None, captures }
    }

    /// The end of a match that begins exactly there.
    pub(crate) fn match_at(&mut self, start: usize) -> Result<Option<usize>, Fault> {
        (self.level, self.depth) = (0, 0);
        let end = self.run(start, 0);
        self.fault.map_or(Ok(end), Err)
    }

    /// Where the first match begins and ends, from `start` on.
    pub(crate) fn search(&mut self, start: usize) -> Result<Option<(usize, usize)>, Fault> {
        for start in start..=self.text.len() {
            if let Some(end) = self.match_at(start)? {
                return Ok(Some((start, end)));
            }
        }
        Ok(None)
    }

    /// What is searched.
    pub(crate) fn text(&self) -> &'a [u8] {
        self.text
    }

    /// How many captures the match has that was found.
    pub(crate) fn count(&self) -> usize {
        self.level
    }

    /// A capture, counted from 0; the first one of a pattern without captures is the match.
    pub(crate) fn capture(
        &self,
        number: usize,
        (start, end): (usize, usize),
    ) -> Result<Captured<'a>, Fault> {
        if number >= self.level {
            if number == 0 {
                return Ok(Captured::Bytes(&self.text[start..end]));
            }
            return Err(Fault::Wrong("invalid capture index"));
        }
        let Capture { start, length } = self.captures[number];
        match length {
            UNFINISHED => Err(Fault::Wrong("unfinished capture")),
            POSITION => Ok(Captured::Position(start as usize + 1)),
            length => Ok(Captured::Bytes(&self.text[start as usize..][..length as usize])),
        }
    }

    #[cold]
    #[inline(never)]
    fn fail(&mut self, text: &'static str) {
        self.fault.get_or_insert(Fault::Wrong(text));
    }

    /// Counts a step; `None` if this was the last one.
    #[inline]
    fn step(&mut self) -> Option<()> {
        self.left -= 1;
        if self.left == 0 { self.ask() } else { Some(()) }
    }

    #[cold]
    #[inline(never)]
    fn ask(&mut self) -> Option<()> {
        let (may_go_on, left) = self.look.may_go_on();
        self.left = left.max(1);
        if may_go_on {
            return Some(());
        }
        self.fault.get_or_insert(Fault::Stopped);
        None
    }

    /// A byte of the pattern; zero at its end.
    #[inline]
    fn at(&self, place: usize) -> u8 {
        self.pattern.get(place).copied().unwrap_or(0)
    }

    /// The end of a match of the pattern from `p` on, with the text from `s` on.
    fn run(&mut self, mut s: usize, mut p: usize) -> Option<usize> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            self.fail("pattern too complex");
            return None;
        }
        let end = loop {
            self.step()?;
            match (self.at(p), self.at(p + 1)) {
                (b'(', b')') => break self.open(s, p + 2, POSITION),
                (b'(', _) => break self.open(s, p + 1, UNFINISHED),
                (b')', _) => break self.close(s, p + 1),
                (0, _) => break Some(s),
                (b'$', 0) => break (s == self.text.len()).then_some(s),
                (b'%', b'b') => {
                    let Some(end) = self.balanced(s, p + 2) else { break None };
                    (s, p) = (end, p + 4);
                    continue;
                }
                (b'%', b'f') => {
                    let after = self.frontier(s, p + 2)?;
                    let Some(next) = after else { break None };
                    p = next;
                    continue;
                }
                (b'%', digit @ b'0'..=b'9') => {
                    let Some(end) = self.repeated(s, digit) else { break None };
                    (s, p) = (end, p + 2);
                    continue;
                }
                _ => {}
            }
            let after = self.class_end(p)?;
            let fits = self.text.get(s).is_some_and(|&byte| self.fits(byte, p, after));
            match self.at(after) {
                b'?' => {
                    if fits {
                        let end = self.run(s + 1, after + 1);
                        if end.is_some() || self.fault.is_some() {
                            break end;
                        }
                    }
                    p = after + 1;
                }
                b'*' => break self.most(s, p, after),
                b'+' if fits => break self.most(s + 1, p, after),
                b'+' => break None,
                b'-' => break self.fewest(s, p, after),
                _ if fits => (s, p) = (s + 1, after),
                _ => break None,
            }
        };
        self.depth -= 1;
        end
    }

    /// The place behind the item at `p`.
    #[inline]
    fn class_end(&mut self, p: usize) -> Option<usize> {
        match self.at(p) {
            b'%' if self.at(p + 1) == 0 => {
                self.fail("malformed pattern (ends with '%')");
                None
            }
            b'%' => Some(p + 2),
            b'[' => self.set_end(p + 1),
            _ => Some(p + 1),
        }
    }

    fn set_end(&mut self, mut p: usize) -> Option<usize> {
        if self.at(p) == b'^' {
            p += 1;
        }
        loop {
            let byte = self.at(p);
            if byte == 0 {
                self.fail("malformed pattern (missing ']')");
                return None;
            }
            p += 1;
            if byte == b'%' && self.at(p) != 0 {
                p += 1;
            }
            if self.at(p) == b']' {
                return Some(p + 1);
            }
        }
    }

    /// Whether a byte is one of the item from `p` up to `after`.
    #[inline]
    fn fits(&self, byte: u8, p: usize, after: usize) -> bool {
        match self.at(p) {
            b'.' => true,
            b'%' => is_in_class(byte, self.at(p + 1)),
            b'[' => self.is_in_set(byte, p, after - 1),
            literal => literal == byte,
        }
    }

    /// Whether a byte is in the set from `p`, its `[`, up to `end`, its `]`.
    fn is_in_set(&self, byte: u8, mut p: usize, end: usize) -> bool {
        let is_positive = self.at(p + 1) != b'^';
        if !is_positive {
            p += 1;
        }
        p += 1;
        while p < end {
            let low = self.at(p);
            let is_it = if low == b'%' {
                p += 1;
                is_in_class(byte, self.at(p))
            } else if self.at(p + 1) == b'-' && p + 2 < end {
                p += 2;
                (low..=self.at(p)).contains(&byte)
            } else {
                low == byte
            };
            if is_it {
                return is_positive;
            }
            p += 1;
        }
        !is_positive
    }

    /// `%bxy`, whose `x` is at `p`.
    fn balanced(&mut self, s: usize, p: usize) -> Option<usize> {
        let (open, close) = (self.at(p), self.at(p + 1));
        if open == 0 || close == 0 {
            self.fail("unbalanced pattern");
            return None;
        }
        if self.text.get(s) != Some(&open) {
            return None;
        }
        let mut depth = 1_usize;
        for at in s + 1..self.text.len() {
            self.step()?;
            let byte = self.text[at];
            if byte == close {
                depth -= 1;
                if depth == 0 {
                    return Some(at + 1);
                }
            } else if byte == open {
                depth += 1;
            }
        }
        None
    }

    /// `%f`, whose set is at `p`. The place behind it if `s` is at its border.
    fn frontier(&mut self, s: usize, p: usize) -> Option<Option<usize>> {
        if self.at(p) != b'[' {
            self.fail("missing '[' after '%f' in pattern");
            return None;
        }
        let after = self.class_end(p)?;
        let before = if s == 0 { 0 } else { self.text[s - 1] };
        let here = self.text.get(s).copied().unwrap_or(0);
        let is_border = !self.is_in_set(before, p, after - 1) && self.is_in_set(here, p, after - 1);
        Some(is_border.then_some(after))
    }

    /// `%1` and so on: what was captured, once more.
    fn repeated(&mut self, s: usize, digit: u8) -> Option<usize> {
        let number = usize::from(digit.wrapping_sub(b'1'));
        let captured = self.captures[..self.level].get(number).copied();
        let Some(Capture { start, length }) = captured.filter(|it| it.length != UNFINISHED) else {
            self.fail("invalid capture index");
            return None;
        };
        // A position is no part of any text.
        let length = usize::try_from(length).ok()?;
        for _ in 0..length / BYTES_PER_STEP {
            self.step()?;
        }
        let captured = &self.text[start as usize..][..length];
        self.text[s..].starts_with(captured).then_some(s + length)
    }

    /// As many of an item as there are, or fewer, and what follows.
    fn most(&mut self, s: usize, p: usize, after: usize) -> Option<usize> {
        let mut end = s;
        while let Some(&byte) = self.text.get(end)
            && self.fits(byte, p, after)
        {
            self.step()?;
            end += 1;
        }
        loop {
            let found = self.run(end, after + 1);
            if found.is_some() || self.fault.is_some() || end == s {
                return found;
            }
            end -= 1;
        }
    }

    /// As few of an item as will do, and what follows.
    fn fewest(&mut self, mut s: usize, p: usize, after: usize) -> Option<usize> {
        loop {
            let found = self.run(s, after + 1);
            if found.is_some() || self.fault.is_some() {
                return found;
            }
            let byte = *self.text.get(s)?;
            if !self.fits(byte, p, after) {
                return None;
            }
            s += 1;
        }
    }

    fn open(&mut self, s: usize, p: usize, length: i32) -> Option<usize> {
        let Some(capture) = self.captures.get_mut(self.level) else {
            self.fail("too many captures");
            return None;
        };
        *capture = Capture { start: s as u32, length };
        self.level += 1;
        let found = self.run(s, p);
        if found.is_none() {
            self.level -= 1;
        }
        found
    }

    fn close(&mut self, s: usize, p: usize) -> Option<usize> {
        let is_open = |capture: &Capture| capture.length == UNFINISHED;
        let Some(number) = self.captures[..self.level].iter().rposition(is_open) else {
            self.fail("invalid pattern capture");
            return None;
        };
        self.captures[number].length = (s - self.captures[number].start as usize) as i32;
        let found = self.run(s, p);
        if found.is_none() {
            self.captures[number].length = UNFINISHED;
        }
        found
    }
}

/// Bytes that are compared as fast as one step is made.
pub(crate) const BYTES_PER_STEP: usize = 64;

const ALPHA: u8 = 1;
const CONTROL: u8 = 2;
const DIGIT: u8 = 4;
const LOWER: u8 = 8;
const PUNCTUATION: u8 = 16;
const SPACE: u8 = 32;
const UPPER: u8 = 64;
const HEX: u8 = 128;

/// Classes of each byte, whatever the locale.
const CLASSES: [u8; 256] = {
    let mut classes = [0; 256];
    let mut byte = 0_u8;
    loop {
        let mut class = 0;
        if byte.is_ascii_alphabetic() {
            class |= ALPHA;
        }
        if byte.is_ascii_control() {
            class |= CONTROL;
        }
        if byte.is_ascii_digit() {
            class |= DIGIT;
        }
        if byte.is_ascii_lowercase() {
            class |= LOWER;
        }
        if byte.is_ascii_punctuation() {
            class |= PUNCTUATION;
        }
        if matches!(byte, b'\t'..=b'\r' | b' ') {
            class |= SPACE;
        }
        if byte.is_ascii_uppercase() {
            class |= UPPER;
        }
        if byte.is_ascii_hexdigit() {
            class |= HEX;
        }
        classes[byte as usize] = class;
        if byte == u8::MAX {
            break classes;
        }
        byte += 1;
    }
};

/// Whether a byte is of a class (`%a`); what is no class stands for itself.
#[inline]
fn is_in_class(byte: u8, class: u8) -> bool {
    let mask = match class | 0x20 {
        b'a' => ALPHA,
        b'c' => CONTROL,
        b'd' => DIGIT,
        b'g' => ALPHA | DIGIT | PUNCTUATION,
        b'l' => LOWER,
        b'p' => PUNCTUATION,
        b's' => SPACE,
        b'u' => UPPER,
        b'w' => ALPHA | DIGIT,
        b'x' => HEX,
        b'z' if class.is_ascii_alphabetic() => return (byte == 0) == (class == b'z'),
        _ => return byte == class,
    };
    if !class.is_ascii_alphabetic() {
        return byte == class;
    }
    (CLASSES[usize::from(byte)] & mask != 0) == class.is_ascii_lowercase()
}

/// Whether a pattern is more than the bytes that it consists of.
pub(crate) fn is_pattern(text: &[u8]) -> bool {
    const IS_SPECIAL: [bool; 256] = {
        let mut is_special = [false; 256];
        let mut rest: &[u8] = b"^$*+?.([%-";
        while let [byte, others @ ..] = rest {
            is_special[*byte as usize] = true;
            rest = others;
        }
        is_special
    };
    text.iter().any(|&byte| IS_SPECIAL[usize::from(byte)])
}
