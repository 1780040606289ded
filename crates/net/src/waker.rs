//! Ending another thread's wait.
//!
//! ```text
//!             prepare_to_sleep            wake (rings the bell)
//!    AWAKE ──────────────────▶ ASLEEP ──────────────────────────▶ WOKEN
//!      │ ▲◀──────── awake ───────┘                                  │ ▲
//!      │ └───────────────────────── awake ──────────────────────────┘ │
//!      └────────────────────── wake (no system call) ─────────────────┘
//! ```
//!
//! Only the backend's own thread moves from `ASLEEP` and `WOKEN` to `AWAKE`, before its caller
//! reads its inbox. So a thread that fills the inbox and then wakes is either seen by that read, or
//! finds `AWAKE` after it and keeps the next poll from sleeping.

#[cfg(target_os = "linux")]
use crate::eventfd::EventFd;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

const AWAKE: u8 = 0;
const ASLEEP: u8 = 1;
const WOKEN: u8 = 2;

/// Ends a backend's wait from any thread: the present one, or otherwise the next.
#[derive(Clone)]
pub struct Waker(Arc<Shared>);

struct Shared {
    state: AtomicU8,
    bell: Bell,
}

/// What ends the system call.
pub(crate) enum Bell {
    #[cfg(target_os = "linux")]
    Event(EventFd),
    Mio(mio::Waker),
}

impl Waker {
    pub(crate) fn new(bell: Bell) -> Waker {
        Waker(Arc::new(Shared { state: AtomicU8::new(AWAKE), bell }))
    }

    /// Ends the wait. Costs a system call only if the thread sleeps and no other thread has woken
    /// it yet.
    pub fn wake(&self) {
        if self.0.state.swap(WOKEN, Ordering::AcqRel) == ASLEEP {
            match &self.0.bell {
                #[cfg(target_os = "linux")]
                Bell::Event(event) => event.ring(),
                // It fails only when the kernel is out of memory; the next wake-up tries again.
                Bell::Mio(waker) => _ = waker.wake(),
            }
        }
    }

    /// Whether the thread may wait; if not, it was woken meanwhile.
    pub(crate) fn prepare_to_sleep(&self) -> bool {
        self.0.state.compare_exchange(AWAKE, ASLEEP, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }

    /// After the wait, before the caller looks at its inbox.
    pub(crate) fn awake(&self) {
        if self.0.state.load(Ordering::Acquire) != AWAKE {
            self.0.state.swap(AWAKE, Ordering::AcqRel);
        }
    }
}

impl fmt::Debug for Waker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Waker").field("state", &self.0.state).finish_non_exhaustive()
    }
}
