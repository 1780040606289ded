//! The events of a file, read by a thread of their own: while one value is built, the next bytes are
//! decompressed and parsed.

use ladon_rdb::{Element, Error, Event, Reader};
use std::io::{self, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::{mem, thread, vec};

/// Events travel together up to this number, or up to so many bytes of elements.
const BATCH_EVENTS: usize = 512;
const BATCH_BYTES: usize = 256 << 10;
/// So many batches may wait.
const BATCHES_WAITING: usize = 8;

type Batch = Vec<Result<Event, Error>>;

/// The events of a file. Whoever drops it ends the thread at its next batch.
pub(crate) struct Events {
    batches: Receiver<Batch>,
    batch: vec::IntoIter<Result<Event, Error>>,
}

impl Events {
    /// Begins to read. `offset` follows the bytes that were taken; behind the last event, it is
    /// where the file ends in its source.
    pub(crate) fn new(
        read: impl Read + Send + 'static,
        offset: Arc<AtomicU64>,
    ) -> io::Result<Events> {
        let (sender, batches) = sync_channel(BATCHES_WAITING);
        let named = thread::Builder::new().name("ladon-rdb-reader".into());
        named.spawn(move || send_all(Reader::new(read), &sender, &offset))?;
        Ok(Events { batches, batch: Vec::new().into_iter() })
    }
}

impl Iterator for Events {
    type Item = Result<Event, Error>;

    fn next(&mut self) -> Option<Result<Event, Error>> {
        loop {
            if let Some(event) = self.batch.next() {
                return Some(event);
            }
            self.batch = self.batches.recv().ok()?.into_iter();
        }
    }
}

fn send_all(mut reader: Reader<impl Read>, sender: &SyncSender<Batch>, offset: &AtomicU64) {
    let (mut batch, mut bytes) = (Vec::with_capacity(BATCH_EVENTS), 0);
    while let Some(event) = reader.next() {
        bytes += event.as_ref().map_or(0, bytes_of_event);
        batch.push(event);
        if batch.len() == BATCH_EVENTS || bytes >= BATCH_BYTES {
            offset.store(reader.offset(), Relaxed);
            let full = mem::replace(&mut batch, Vec::with_capacity(BATCH_EVENTS));
            if sender.send(full).is_err() {
                return;
            }
            bytes = 0;
        }
    }
    offset.store(reader.offset(), Relaxed);
    // Nobody wants it any more, if it cannot be sent.
    let _ = sender.send(batch);
}

fn bytes_of_event(event: &Event) -> usize {
    match event {
        Event::Element(element) => bytes_of(element),
        Event::Key(key) => key.name.len(),
        Event::Function(code) => code.len(),
        _ => 0,
    }
}

/// Bytes of an element's strings.
pub(crate) fn bytes_of(element: &Element) -> usize {
    match element {
        Element::StringPart(bytes)
        | Element::ListElement(bytes)
        | Element::SetMember(bytes)
        | Element::Scored { member: bytes, .. } => bytes.len(),
        Element::Field(field) => field.name.len() + field.value.len(),
        Element::Entry(entry) => {
            entry.fields.iter().map(|(name, value)| name.len() + value.len()).sum()
        }
        _ => 0,
    }
}
