//! What was measured: versions, command lines, settings in full; and what was not found.

use maud::{Markup, html};

use crate::report::view::verdict::promise;
use crate::results::Results;

/// The section.
pub(super) fn systems(run: &Results, id: &str) -> Markup {
    let (missing, found): (Vec<_>, Vec<_>) =
        run.systems.iter().partition(|system| system.missing.is_some());
    html! {
        section id=(id) {
            @for system in found {
                article.system {
                    h3 { (system.label) " " span.muted { (system.version.as_deref().unwrap_or("version not told")) } }
                    @for setting in &system.settings {
                        details {
                            summary {
                                (setting.name)
                                @if !setting.promise.is_empty() { span.muted { ": " (promise(&setting.promise)) } }
                            }
                            pre tabindex="0" { code { (command_line(&setting.command_line)) } }
                            @if setting.values.is_empty() {
                                p.muted { "This system does not tell its settings." }
                            } @else {
                                dl.values {
                                    @for (name, value) in &setting.values { div { dt { (name) } dd { (value) } } }
                                }
                            }
                        }
                    }
                }
            }
            @if !missing.is_empty() {
                h3 { "Not found" }
                dl.facts {
                    @for system in missing {
                        @if let Some(record) = &system.missing {
                            div {
                                dt { (system.label) }
                                dd {
                                    (record.reason)
                                    @if !record.install.is_empty() { br; code { (record.install) } }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// Words of a command line as a shell takes them.
pub(super) fn command_line(words: &[String]) -> String {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "-_./=:,+@%".contains(letter);
    words
        .iter()
        .map(|word| {
            if !word.is_empty() && word.chars().all(plain) {
                word.clone()
            } else {
                format!("'{}'", word.replace('\'', "'\\''"))
            }
        })
        .collect::<Vec<_>>()
        .join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_where_a_shell_would_break_them() {
        let words = ["a", "b c", "", "it's"].map(str::to_owned);
        assert_eq!(command_line(&words), "a 'b c' '' 'it'\\''s'");
    }
}
