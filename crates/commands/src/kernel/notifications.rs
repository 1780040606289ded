//! Keyspace notifications: the engine's events as messages on `__keyspace@N__:KEY` and
//! `__keyevent@N__:EVENT`.

use crate::kernel::pubsub::published::Kind;
use crate::kernel::pubsub::registry::PubSub;
use ladon_engine::{Event, EventClass, Keyspace};
use ladon_model::Lsn;
use ladon_settings::Settings;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// Which channels get the events.
#[derive(Default)]
pub(crate) struct Forms {
    by_key: AtomicBool,
    by_event: AtomicBool,
}

/// Applies the setting `notify-keyspace-events`.
pub(crate) fn apply(keyspace: &Keyspace, settings: &Settings, forms: &Forms) {
    let wanted = settings.notify_keyspace_events();
    let (by_key, by_event) = (wanted.contains('K'), wanted.contains('E'));
    forms.by_key.store(by_key, Relaxed);
    forms.by_event.store(by_event, Relaxed);
    let classes = wanted.chars().map(class).fold(0, |classes, class| classes | class.0);
    keyspace.collect_events(EventClass(if by_key || by_event { classes } else { 0 }));
}

/// The classes that a letter of the setting means.
fn class(letter: char) -> EventClass {
    match letter {
        'g' => EventClass::GENERIC,
        '$' => EventClass::STRING,
        'l' => EventClass::LIST,
        's' => EventClass::SET,
        'h' => EventClass::HASH,
        'z' => EventClass::SORTED_SET,
        'x' => EventClass::EXPIRED,
        'e' => EventClass::EVICTED,
        't' => EventClass::STREAM,
        'd' => EventClass::MODULE,
        'm' => EventClass::KEY_MISS,
        'n' => EventClass::NEW,
        'o' => EventClass::OVERWRITTEN,
        'c' => EventClass::TYPE_CHANGED,
        'A' => EventClass("g$lshzxetd".chars().map(class).fold(0, |all, class| all | class.0)),
        _ => EventClass::NONE,
    }
}

/// Publishes the events of every transaction.
pub(crate) fn follow(keyspace: &Keyspace, pubsub: &Arc<PubSub>, forms: &Arc<Forms>) {
    let (pubsub, forms) = (Arc::clone(pubsub), Arc::clone(forms));
    keyspace.deliver_events(Box::new(move |event, depends| {
        if pubsub.has_subscribers() {
            publish(&pubsub, &forms, event, depends);
        }
    }));
}

fn publish(pubsub: &PubSub, forms: &Forms, event: &Event<'_>, depends: Lsn) {
    let Event { database, name, key } = *event;
    if forms.by_key.load(Relaxed) {
        let mut channel = format!("__keyspace@{database}__:").into_bytes();
        channel.extend_from_slice(key);
        pubsub.publish(Kind::Channel, &channel, name.as_bytes(), depends);
    }
    if forms.by_event.load(Relaxed) {
        let channel = format!("__keyevent@{database}__:{name}");
        pubsub.publish(Kind::Channel, channel.as_bytes(), key, depends);
    }
}
