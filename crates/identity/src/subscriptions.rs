//! What a changed user has lost of that which comes without a request: channels, news of keys.

use crate::key_patterns::KeyAccess;
use crate::pattern::Pattern;
use crate::selector::any_allows;
use crate::user::User;

/// The channels that a user may still use after losing some.
#[derive(Debug)]
pub struct ChannelsLeft<'a> {
    patterns: Vec<&'a Pattern>,
}

impl<'a> ChannelsLeft<'a> {
    /// The channels left to `now`; `None` if the user has lost none since `before`.
    ///
    /// As in Redis, only patterns are compared: `&news:*` in the place of `&news:eu` counts as a
    /// loss, and each subscription is then looked at.
    pub fn after(before: &User, now: &'a User) -> Option<ChannelsLeft<'a>> {
        if now.selectors().iter().any(|selector| selector.channels.all) {
            return None;
        }
        let patterns_of = |user: &'a User| {
            user.selectors().iter().flat_map(|selector| &selector.channels.patterns)
        };
        let patterns: Vec<&Pattern> = patterns_of(now).collect();
        let had_all = before.selectors().iter().any(|selector| selector.channels.all);
        let mut had = before.selectors().iter().flat_map(|selector| &selector.channels.patterns);
        let keeps_all = !had_all && had.all(|pattern| patterns.contains(&pattern));
        (!keeps_all).then_some(ChannelsLeft { patterns })
    }

    /// Whether a subscription may stay. A connection that has another one has to end.
    pub fn allows(&self, channel: &[u8], is_pattern: bool) -> bool {
        any_allows(self.patterns.iter().copied(), channel, is_pattern)
    }
}

/// Whether the user can read fewer keys than before, as far as patterns tell: a connection that is
/// told of changed keys (`CLIENT TRACKING`) then has to end.
pub fn has_lost_keys(before: &User, now: &User) -> bool {
    let reads = |user: &User, pattern: &[u8]| {
        user.selectors().iter().any(|selector| selector.keys.has_readable(pattern))
    };
    if now.selectors().iter().any(|selector| selector.keys.allows_every_key(KeyAccess::READ)) {
        return false;
    }
    before.selectors().iter().any(|selector| {
        selector.keys.is_all() || selector.keys.readable().any(|pattern| !reads(now, pattern))
    })
}
