//! Rows as an aligned table, or as CSV (RFC 4180).

use super::answer::{Answer, Cell};
use std::io::{self, Write};

fn text_of(cell: &Cell) -> &str {
    match cell {
        Cell::Null => "NULL",
        Cell::Number(text) | Cell::Text(text) => text,
    }
}

/// A value on one line.
fn shown(cell: &Cell) -> String {
    text_of(cell).replace('\n', "\\n").replace('\r', "\\r").replace('\t', "\\t")
}

fn width(text: &str) -> usize {
    text.chars().count()
}

/// Prints a table with its number of rows; of a change, the number of rows.
///
/// # Errors
/// Those of the output.
pub fn print(answer: &Answer, out: &mut dyn Write) -> io::Result<()> {
    if answer.columns.is_empty() {
        return match answer.changed {
            Some(1) => writeln!(out, "OK, 1 row"),
            Some(count) => writeln!(out, "OK, {count} rows"),
            None => writeln!(out, "OK"),
        };
    }
    let rows: Vec<Vec<String>> =
        answer.rows.iter().map(|row| row.iter().map(shown).collect()).collect();
    let mut widths: Vec<usize> = answer.columns.iter().map(|name| width(name)).collect();
    for row in &rows {
        for (own, text) in widths.iter_mut().zip(row) {
            *own = (*own).max(width(text));
        }
    }
    let names: Vec<String> = answer
        .columns
        .iter()
        .zip(&widths)
        .map(|(name, width)| format!(" {name:<width$} "))
        .collect();
    writeln!(out, "{}", names.join("|").trim_end())?;
    let lines: Vec<String> = widths.iter().map(|width| "-".repeat(width + 2)).collect();
    writeln!(out, "{}", lines.join("+"))?;
    for (row, cells) in rows.iter().zip(&answer.rows) {
        let parts: Vec<String> = row
            .iter()
            .zip(cells)
            .zip(&widths)
            .map(|((text, cell), width)| match cell {
                Cell::Number(_) => format!(" {text:>width$} "),
                _ => format!(" {text:<width$} "),
            })
            .collect();
        writeln!(out, "{}", parts.join("|").trim_end())?;
    }
    match rows.len() {
        1 => writeln!(out, "(1 row)"),
        count => writeln!(out, "({count} rows)"),
    }
}

/// Prints rows as CSV, the names of the columns first.
///
/// # Errors
/// Those of the output.
pub fn print_csv(answer: &Answer, out: &mut dyn Write) -> io::Result<()> {
    if answer.columns.is_empty() {
        return Ok(());
    }
    let names: Vec<String> = answer.columns.iter().map(|name| quoted(name)).collect();
    write!(out, "{}\r\n", names.join(","))?;
    for row in &answer.rows {
        let parts: Vec<String> = row
            .iter()
            .map(|cell| match cell {
                Cell::Null => String::new(),
                cell => quoted(text_of(cell)),
            })
            .collect();
        write!(out, "{}\r\n", parts.join(","))?;
    }
    Ok(())
}

fn quoted(text: &str) -> String {
    let is_plain = !text.is_empty() && !text.contains(['"', ',', '\n', '\r']);
    if is_plain { text.to_owned() } else { format!("\"{}\"", text.replace('"', "\"\"")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer() -> Answer {
        let text = |text: &str| Cell::Text(text.to_owned());
        Answer {
            columns: vec!["ID".to_owned(), "NAME".to_owned()],
            rows: vec![
                vec![Cell::Number("1".to_owned()), text("one, \"two\"")],
                vec![Cell::Number("20".to_owned()), Cell::Null],
                vec![Cell::Number("3".to_owned()), text("")],
            ],
            changed: None,
        }
    }

    #[test]
    fn tables_are_aligned() {
        let mut out = Vec::new();
        print(&answer(), &mut out).unwrap();
        let expected = " ID | NAME\n----+------------\n  1 | one, \"two\"\n 20 | NULL\n  3 |\n\
                        (3 rows)\n";
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }

    #[test]
    fn csv_tells_null_from_an_empty_text() {
        let mut out = Vec::new();
        print_csv(&answer(), &mut out).unwrap();
        let expected = "ID,NAME\r\n1,\"one, \"\"two\"\"\"\r\n20,\r\n3,\"\"\r\n";
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }
}
