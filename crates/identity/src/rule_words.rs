//! Rules as words: a selector may be spread over several.

/// Joins the words of each selector, `(+get` and `~key)`, by a blank.
///
/// # Errors
/// The first word of a selector that does not end.
pub(crate) fn join_selectors<'a>(
    words: impl IntoIterator<Item = &'a [u8]>,
) -> Result<Vec<Vec<u8>>, Vec<u8>> {
    let mut rules = Vec::new();
    let mut open: Option<(&[u8], Vec<u8>)> = None;
    for word in words {
        let closes = word.ends_with(b")");
        open = match open.take() {
            Some((first, selector)) => {
                let selector = [&selector[..], word].join(&b' ');
                if closes {
                    rules.push(selector);
                    None
                } else {
                    Some((first, selector))
                }
            }
            None if word.starts_with(b"(") && !closes => Some((word, word.to_vec())),
            None => {
                rules.push(word.to_vec());
                None
            }
        };
    }
    match open {
        Some((first, _)) => Err(first.to_vec()),
        None => Ok(rules),
    }
}

/// The rules inside a selector, if the rule is one.
pub(crate) fn selector_rules(rule: &[u8]) -> Option<impl Iterator<Item = &[u8]>> {
    let inside = rule.strip_prefix(b"(")?.strip_suffix(b")")?;
    Some(inside.split(|byte| byte.is_ascii_whitespace()).filter(|word| !word.is_empty()))
}
