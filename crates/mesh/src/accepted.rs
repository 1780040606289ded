//! The links that others have made to this node: not too many, and a node that comes again takes
//! the place of what it left behind.

use crate::identity::Identity;
use parking_lot::Mutex;
use tokio::sync::oneshot;

/// Links of one node to this one. It has one; a second one while the first has not ended yet, and
/// some more if its network often goes away.
const LINKS_OF_ONE_MAX: usize = 4;

struct Entry {
    id: u64,
    node: u64,
    incarnation: u64,
    /// Ends the link, with this text for the other side.
    end: oneshot::Sender<String>,
}

#[derive(Default)]
struct State {
    /// The oldest one first.
    entries: Vec<Entry>,
    next_id: u64,
}

/// The links that others have made.
pub(crate) struct Accepted {
    state: Mutex<State>,
    max: usize,
}

/// A place among the links.
pub(crate) struct Membership<'a> {
    accepted: &'a Accepted,
    id: u64,
    /// Resolves to a text if the link has to end.
    pub(crate) ends: oneshot::Receiver<String>,
}

impl Drop for Membership<'_> {
    fn drop(&mut self) {
        self.accepted.state.lock().entries.retain(|entry| entry.id != self.id);
    }
}

impl Accepted {
    pub(crate) fn new(max: usize) -> Accepted {
        Accepted { state: Mutex::default(), max }
    }

    pub(crate) fn count(&self) -> usize {
        self.state.lock().entries.len()
    }

    /// A place for a link of this node.
    ///
    /// # Errors
    /// A text for the other side, if there is none.
    pub(crate) fn admit(&self, peer: &Identity) -> Result<Membership<'_>, String> {
        let mut state = self.state.lock();
        let (node, incarnation) = (peer.node, peer.incarnation);
        let mut others = 0;
        let mut at = state.entries.len();
        while at > 0 {
            at -= 1;
            let entry = &state.entries[at];
            let text = if node != 0 && entry.node == node && entry.incarnation != incarnation {
                tracing::warn!("member {node} was started anew, or is there twice");
                format!("member {node} has connected with another incarnation")
            } else if entry.incarnation == incarnation {
                others += 1;
                if others < LINKS_OF_ONE_MAX {
                    continue;
                }
                "the same node has made newer links".to_owned()
            } else {
                continue;
            };
            let entry = state.entries.remove(at);
            // The link may just be ending.
            let _ = entry.end.send(text);
        }
        if state.entries.len() >= self.max {
            return Err(format!("{} other links are open here", state.entries.len()));
        }
        let id = state.next_id;
        state.next_id += 1;
        let (end, ends) = oneshot::channel();
        state.entries.push(Entry { id, node, incarnation, end });
        Ok(Membership { accepted: self, id, ends })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_that_comes_again_replaces_its_links() {
        let accepted = Accepted::new(6);
        let of = |node, incarnation| Identity { node, incarnation, ..Identity::default() };
        let admit = |node, incarnation| accepted.admit(&of(node, incarnation));
        let mut first: Vec<_> = (0..4).map(|_| admit(1, 10).expect("a place")).collect();
        let _fifth = admit(1, 10).expect("a place");
        assert_eq!(accepted.count(), 4);
        assert_eq!(first[0].ends.try_recv(), Ok("the same node has made newer links".to_owned()));
        assert!(first[1].ends.try_recv().is_err(), "it is still there");
        let _again = admit(1, 11).expect("a place");
        assert_eq!(accepted.count(), 1);
        let text = "member 1 has connected with another incarnation".to_owned();
        assert_eq!(first[1].ends.try_recv(), Ok(text));
        drop(first);
        // Nodes that are no members yet are told apart by their incarnations.
        let many: Vec<_> = (0..5).map(|new| admit(0, 100 + new).expect("a place")).collect();
        assert_eq!(admit(2, 20).err().as_deref(), Some("6 other links are open here"));
        drop(many);
        assert!(admit(2, 20).is_ok());
    }
}
