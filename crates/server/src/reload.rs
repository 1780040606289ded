//! A request to read files again, from a signal.

use parking_lot::Mutex;

type Handler = Box<dyn Fn() + Send + Sync>;

/// Those who read files that may change while the server runs.
#[derive(Default)]
pub struct Reload {
    handlers: Mutex<Vec<Handler>>,
}

impl Reload {
    /// Lets everybody read their files again. Returns whether there is anybody.
    pub fn request(&self) -> bool {
        let handlers = self.handlers.lock();
        handlers.iter().for_each(|handler| handler());
        !handlers.is_empty()
    }

    /// Registers `handler`, which says itself in the log what it has read.
    pub(crate) fn add(&self, handler: impl Fn() + Send + Sync + 'static) {
        self.handlers.lock().push(Box::new(handler));
    }
}
