//! A command's arguments as a tree.

/// One argument, or a group of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Argument {
    /// In lower case, unique among its neighbours.
    pub name: String,
    /// What to show for it; absent for groups.
    pub display_text: Option<String>,
    /// What may stand there.
    pub kind: ArgumentKind,
    /// Which of the command's key specs finds it, if it is a key.
    pub key_spec_index: Option<u8>,
    /// The fixed word before it, or, for [`ArgumentKind::PureToken`], that it is.
    pub token: Option<String>,
    /// The version of Redis that brought it, where that is not the command's.
    pub since: Option<String>,
    /// The version of Redis that deprecated it.
    pub deprecated_since: Option<String>,
    /// May be left out.
    pub optional: bool,
    /// May be repeated (without its token).
    pub multiple: bool,
    /// What is repeated includes its token.
    pub multiple_token: bool,
    /// The arguments of a group.
    pub arguments: Vec<Argument>,
}

impl Argument {
    /// The flags as `COMMAND DOCS` says them.
    pub fn flags(&self) -> impl Iterator<Item = &'static str> + use<> {
        let flags = [
            (self.optional, "optional"),
            (self.multiple, "multiple"),
            (self.multiple_token, "multiple_token"),
        ];
        flags.into_iter().filter_map(|(set, name)| set.then_some(name))
    }
}

/// What may stand at an argument's place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArgumentKind {
    /// Any bytes.
    String,
    /// An integer.
    Integer,
    /// A decimal number.
    Double,
    /// A key.
    Key,
    /// A glob pattern.
    Pattern,
    /// Seconds or milliseconds since 1970.
    UnixTime,
    /// A fixed word.
    PureToken,
    /// One of the group's arguments.
    OneOf,
    /// All of the group's arguments.
    Block,
}

impl ArgumentKind {
    /// As `COMMAND DOCS` says it.
    pub fn name(self) -> &'static str {
        match self {
            ArgumentKind::String => "string",
            ArgumentKind::Integer => "integer",
            ArgumentKind::Double => "double",
            ArgumentKind::Key => "key",
            ArgumentKind::Pattern => "pattern",
            ArgumentKind::UnixTime => "unix-time",
            ArgumentKind::PureToken => "pure-token",
            ArgumentKind::OneOf => "oneof",
            ArgumentKind::Block => "block",
        }
    }
}
