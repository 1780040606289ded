//! Where a statement ends: at a semicolon outside of quotes, comments and a trigger's body.

/// Takes the first complete statement, without its semicolon, or a line that begins with a backslash.
/// Empty statements are left out.
pub fn take(text: &mut String) -> Option<String> {
    loop {
        let start = text.len() - text.trim_start().len();
        let rest = &text[start..];
        let end = match rest.starts_with('\\') {
            true => rest.find('\n').map_or(rest.len(), |end| end + 1),
            false => end_of(rest)?,
        };
        let statement = rest[..end].trim_end().trim_end_matches(';').trim().to_owned();
        text.drain(..start + end);
        if !statement.is_empty() {
            return Some(statement);
        }
        if text.trim().is_empty() {
            return None;
        }
    }
}

/// The place behind the semicolon that ends the statement.
fn end_of(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let (mut at, mut words, mut depth) = (0, 0, 0_usize);
    let mut is_trigger = false;
    while at < bytes.len() {
        let rest = &text[at..];
        match bytes[at] {
            quote @ (b'\'' | b'"') => {
                at += 2 + rest[1..].find(char::from(quote))?;
            }
            b'-' if rest.starts_with("--") => at += rest.find('\n')?,
            b'/' if rest.starts_with("/*") => at += 4 + rest[2..].find("*/")?,
            b';' if !is_trigger || depth == 0 => return Some(at + 1),
            byte if byte.is_ascii_alphabetic() || byte == b'_' => {
                let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
                let length = rest.bytes().position(|byte| !is_part(&byte));
                let length = length.unwrap_or(rest.len());
                words += 1;
                match &rest[..length].to_ascii_uppercase()[..] {
                    "CREATE" if words == 1 => is_trigger = true,
                    "TRIGGER" if words == 2 => {}
                    _ if words == 2 => is_trigger = false,
                    "BEGIN" | "CASE" if is_trigger => depth += 1,
                    "END" if is_trigger => depth = depth.saturating_sub(1),
                    _ => {}
                }
                at += length;
            }
            _ => at += rest.chars().next().map_or(1, char::len_utf8),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(text: &str) -> (Vec<String>, String) {
        let mut rest = text.to_owned();
        let mut found = Vec::new();
        while let Some(statement) = take(&mut rest) {
            found.push(statement);
        }
        (found, rest.trim().to_owned())
    }

    #[test]
    fn statements_end_at_semicolons_outside_of_quotes_and_comments() {
        let (found, rest) = all("SELECT ';', \";\" -- ;\n, 1; ;; /* ; */ SELECT 2; SELECT");
        assert_eq!(found, ["SELECT ';', \";\" -- ;\n, 1", "/* ; */ SELECT 2"]);
        assert_eq!(rest, "SELECT");
    }

    #[test]
    fn a_triggers_body_has_semicolons() {
        let trigger = "CREATE TRIGGER a AFTER INSERT ON t FOR EACH ROW BEGIN \
                       SELECT CASE 1 WHEN 1 THEN 2 END; DELETE FROM u; END";
        let (found, rest) = all(&format!("{trigger}; SELECT 1;"));
        assert_eq!(found, [trigger, "SELECT 1"]);
        assert_eq!(rest, "");
        assert_eq!(all("create table t(a int);").0, ["create table t(a int)"]);
    }

    #[test]
    fn backslashes_take_a_line() {
        assert_eq!(all("\\d t\nSELECT 1;").0, ["\\d t", "SELECT 1"]);
    }

    #[test]
    fn what_is_not_complete_stays() {
        for text in ["SELECT 'a;", "SELECT 1 -- ;", "SELECT /* ;", "é;\"", "SELECT 'é"] {
            assert!(all(text).0.len() <= 1, "{text}");
        }
        assert_eq!(all("SELECT 'é';").0, ["SELECT 'é'"]);
    }
}
