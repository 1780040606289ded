//! An event's delays as a picture made of characters.

use ladon_kernel::statistics::latency_events::History;

/// Rows of the picture.
const ROWS: usize = 5;
/// Delays that are drawn, the newest ones.
const COLUMNS: usize = 80;

/// Draws the delays as columns, with their age below, the newest one on the right.
pub(crate) fn graph(event: &str, history: &History, now_seconds: u64) -> String {
    let drawn = history.delays.len().min(COLUMNS);
    let delays: Vec<_> = history.delays.iter().skip(history.delays.len() - drawn).collect();
    let high = delays.iter().map(|delay| delay.milliseconds).max().unwrap_or(0);
    let low = delays.iter().map(|delay| delay.milliseconds).min().unwrap_or(0);
    let mut text = format!(
        "{event} - high {high} ms, low {low} ms (all time high {} ms)\n{}\n",
        history.milliseconds_max,
        "-".repeat(COLUMNS)
    );
    let heights: Vec<usize> = delays
        .iter()
        .map(|delay| {
            let above = (delay.milliseconds - low) as f64 / (high - low).max(1) as f64;
            1 + (above * (ROWS - 1) as f64).round() as usize
        })
        .collect();
    for row in (1..=ROWS).rev() {
        text.extend(heights.iter().map(|&height| if height >= row { '#' } else { ' ' }));
        text.push('\n');
    }
    let ages: Vec<Vec<char>> =
        delays.iter().map(|delay| age(now_seconds.saturating_sub(delay.unix_seconds))).collect();
    for line in 0..ages.iter().map(Vec::len).max().unwrap_or(0) {
        text.push('\n');
        text.extend(ages.iter().map(|age| age.get(line).unwrap_or(&' ')));
    }
    text.push('\n');
    text
}

/// An age in its largest unit, to be written downwards.
fn age(seconds: u64) -> Vec<char> {
    let text = match seconds {
        0..60 => format!("{seconds}s"),
        60..3600 => format!("{}m", seconds / 60),
        3600..86_400 => format!("{}h", seconds / 3600),
        _ => format!("{}d", seconds / 86_400),
    };
    text.chars().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use ladon_kernel::statistics::latency_events::Delay;

    #[test]
    fn the_longest_delay_is_the_highest_column() {
        let delays = [(10, 100), (70, 20), (75, 60)];
        let delays = delays.map(|(at, ms)| Delay { unix_seconds: at, milliseconds: ms });
        let history = History { delays: delays.into(), milliseconds_max: 300 };
        let lines = graph("command", &history, 80);
        let lines: Vec<&str> = lines.lines().collect();
        assert_eq!(lines[0], "command - high 100 ms, low 20 ms (all time high 300 ms)");
        assert_eq!(lines[2..], ["#  ", "#  ", "# #", "# #", "###", "", "115", "m0s", " s "]);
    }
}
