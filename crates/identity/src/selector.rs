//! A selector: commands, keys, channels and databases that are allowed together.

use crate::command_rights::CommandRights;
use crate::command_table::CommandTable;
use crate::databases::DatabaseRights;
use crate::key_patterns::KeyRights;
use crate::pattern::{Pattern, has_blank};
use crate::rule_error::RuleError;
use crate::rule_words::selector_rules;

/// What rules are read with.
#[derive(Clone, Copy, Debug)]
pub struct RuleContext<'a> {
    /// The commands that rules may name.
    pub table: &'a CommandTable,
    /// `acl-pubsub-default allchannels`: a new selector may use every channel.
    pub all_channels_at_first: bool,
}

/// The channels of a selector.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ChannelRights {
    /// All channels; then there are no patterns.
    pub(crate) all: bool,
    /// In the order in which they were added.
    pub(crate) patterns: Vec<Pattern>,
}

impl ChannelRights {
    /// Whether `channel` may be used. A pattern to subscribe to must be allowed by a rule with the
    /// very same pattern.
    pub(crate) fn allows(&self, channel: &[u8], is_pattern: bool) -> bool {
        self.all || any_allows(&self.patterns, channel, is_pattern)
    }

    /// The rules that add to `resetchannels` to make these rights, with blanks between.
    pub(crate) fn description(&self) -> Vec<u8> {
        if self.all {
            return b"&*".to_vec();
        }
        let rule = |pattern: &Pattern| [b"&", pattern.text()].concat();
        self.patterns.iter().map(rule).collect::<Vec<_>>().join(&b' ')
    }
}

/// Whether one of these patterns allows a channel, or a pattern literally.
pub(crate) fn any_allows<'a>(
    patterns: impl IntoIterator<Item = &'a Pattern>,
    channel: &[u8],
    is_pattern: bool,
) -> bool {
    let allows = |pattern: &Pattern| {
        if is_pattern { pattern.text() == channel } else { pattern.matches(channel) }
    };
    patterns.into_iter().any(allows)
}

/// One set of rights of a user. A request must fit into one selector as a whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selector {
    pub(crate) commands: CommandRights,
    pub(crate) keys: KeyRights,
    pub(crate) channels: ChannelRights,
    pub(crate) databases: DatabaseRights,
}

impl Selector {
    /// A selector that allows no command.
    pub(crate) fn new(context: RuleContext<'_>) -> Selector {
        let mut commands = CommandRights::default();
        commands.set_all(false, context.table);
        Selector {
            commands,
            keys: KeyRights::default(),
            channels: ChannelRights { all: context.all_channels_at_first, patterns: Vec::new() },
            databases: DatabaseRights::All,
        }
    }

    /// The selector that a rule `(...)` makes; `None` if it is another rule.
    ///
    /// Inside the parentheses words are what stands between blanks: quotes mean nothing. A word
    /// that ends with `)` is a syntax error, because it would end the selector in a description.
    pub(crate) fn parse(
        rule: &[u8],
        context: RuleContext<'_>,
    ) -> Option<Result<Selector, RuleError>> {
        let rules = selector_rules(rule)?;
        let mut selector = Selector::new(context);
        for rule in rules {
            let applied = match rule.ends_with(b")") {
                true => Err(RuleError::Syntax),
                false => selector.apply(rule, context),
            };
            if let Err(error) = applied {
                return Some(Err(error));
            }
        }
        Some(Ok(selector))
    }

    /// Applies one rule about commands, keys, channels or databases.
    ///
    /// # Errors
    /// As in Redis. Ladon also refuses what Redis accepts and cannot read back from its own
    /// description: a lone `%`, and an argument of a command with a blank in it.
    pub fn apply(&mut self, rule: &[u8], context: RuleContext<'_>) -> Result<(), RuleError> {
        match rule.to_ascii_lowercase().as_slice() {
            b"allkeys" | b"~*" => self.keys.allow_all(),
            b"resetkeys" => self.keys = KeyRights::default(),
            b"allchannels" | b"&*" => self.set_channels(true),
            b"resetchannels" => self.set_channels(false),
            b"allcommands" => self.commands.set_all(true, context.table),
            b"nocommands" => self.commands.set_all(false, context.table),
            b"alldbs" => self.databases = DatabaseRights::All,
            b"resetdbs" => self.databases = DatabaseRights::These(Default::default()),
            [b'd', b'b', b'=', list @ ..] => self.databases = DatabaseRights::of(list)?,
            [b'~' | b'%', ..] => self.keys.add(rule)?,
            [b'&', ..] => self.add_channel(&rule[1..])?,
            _ => self.commands.apply(rule, context.table)?,
        }
        Ok(())
    }

    pub(crate) fn set_channels(&mut self, all: bool) {
        self.channels = ChannelRights { all, patterns: Vec::new() };
    }

    fn add_channel(&mut self, text: &[u8]) -> Result<(), RuleError> {
        if self.channels.all {
            return Err(RuleError::ChannelsAreAll);
        }
        if has_blank(text) {
            return Err(RuleError::Syntax);
        }
        if !self.channels.patterns.iter().any(|known| known.text() == text) {
            self.channels.patterns.push(Pattern::new(text));
        }
        Ok(())
    }

    /// Whether there is nothing that it forbids.
    pub(crate) fn is_unlimited(&self, table: &CommandTable) -> bool {
        self.keys.is_all()
            && self.channels.all
            && self.databases.is_all()
            && self.commands.is_all(table)
    }
}
