//! A plain text table: first column left, the others right.

/// Rows of cells below a header.
#[derive(Clone, Debug, Default)]
pub struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table with these column heads.
    #[must_use]
    pub fn new(heads: &[&str]) -> Self {
        Self { rows: vec![heads.iter().map(|&head| head.to_owned()).collect()] }
    }

    /// Adds a row; missing cells stay blank.
    pub fn row(&mut self, cells: Vec<String>) {
        self.rows.push(cells);
    }

    /// The table as text, each line ended.
    #[must_use]
    pub fn render(&self) -> String {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let width = |column: usize| {
            self.rows
                .iter()
                .filter_map(|row| row.get(column))
                .map(|cell| cell.chars().count())
                .max()
                .unwrap_or(0)
        };
        let widths: Vec<usize> = (0..columns).map(width).collect();
        let mut text = String::new();
        for (index, row) in self.rows.iter().enumerate() {
            let mut line = String::new();
            for (column, &width) in widths.iter().enumerate() {
                let cell = row.get(column).map_or("", String::as_str);
                if column == 0 {
                    line += &format!("{cell:<width$}");
                } else {
                    line += &format!("  {cell:>width$}");
                }
            }
            text += line.trim_end();
            text.push('\n');
            if index == 0 {
                text += &"-".repeat(widths.iter().sum::<usize>() + 2 * columns.saturating_sub(1));
                text.push('\n');
            }
        }
        text
    }
}

/// `value` with `digits` digits after the point, or a dash where there is none.
#[must_use]
pub fn number(value: Option<f64>, digits: usize) -> String {
    value.map_or_else(|| "-".to_owned(), |value| format!("{value:.digits$}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up() {
        let mut table = Table::new(&["system", "P=1"]);
        table.row(vec!["redis".into(), number(Some(7.0), 2)]);
        table.row(vec!["ladon".into(), number(None, 2)]);
        assert_eq!(table.render(), "system   P=1\n------------\nredis   7.00\nladon      -\n");
    }
}
