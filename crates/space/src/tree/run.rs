//! Many items put in together, in order: those that lie beside each other take one way down.

use super::node::{FANOUT, Inner, Node, RightEdge};
use super::search::{Hints, Item};
use super::{Tree, child_of, place_of};
use arrayvec::ArrayVec;
use std::cmp::Ordering;
use std::iter::Peekable;
use std::sync::Arc;

/// What is still to be put in, and what came of the rest.
struct Run<'a, I: Iterator, O, R> {
    items: Peekable<I>,
    order: O,
    replaced: R,
    leaves: &'a mut usize,
    inners: &'a mut usize,
}

/// What came of a node.
#[derive(Default)]
struct Below {
    added: u64,
    /// The node's first item is another one now.
    is_first: bool,
}

impl<T: Item> Tree<T> {
    /// Puts in items that ascend by `order`, each into the place of the item that is equal, which
    /// `replaced` gets. Only items with the same hint may be equal.
    pub fn put_run(
        &mut self,
        items: impl IntoIterator<Item = T>,
        order: impl Fn(&T, &T) -> Ordering,
        replaced: impl FnMut(T),
    ) {
        let items = items.into_iter().peekable();
        let (leaves, inners) = (&mut self.leaves, &mut self.inners);
        let mut run = Run { items, order, replaced, leaves, inners };
        loop {
            self.len += run.put_below(&mut self.root, None).added;
            if run.items.peek().is_none() {
                return;
            }
            // There was no room.
            let root = std::mem::replace(&mut self.root, Node::leaf());
            self.root = Node::over(std::iter::once(root));
            *run.inners += 1;
        }
    }
}

impl<T, I, O, R> Run<'_, I, O, R>
where
    T: Item,
    I: Iterator<Item = T>,
    O: Fn(&T, &T) -> Ordering,
    R: FnMut(T),
{
    /// Puts in what comes before `end`, until there is no room in the node.
    fn put_below(&mut self, node: &mut Node<T>, end: Option<&T>) -> Below {
        match node {
            Node::Leaf(leaf) => self.put_into_leaf(&mut Arc::make_mut(leaf).items, end),
            Node::Inner(inner) => self.put_into_inner(Arc::make_mut(inner), end),
        }
    }

    /// Whether the next item comes before `end`, if there is one.
    fn is_before(&mut self, end: Option<&T>) -> bool {
        match (self.items.peek(), end) {
            (None, _) => false,
            (Some(_), None) => true,
            (Some(item), Some(end)) => (self.order)(item, end) == Ordering::Less,
        }
    }

    fn put_into_leaf(&mut self, items: &mut ArrayVec<T, FANOUT>, end: Option<&T>) -> Below {
        let mut below = Below::default();
        while self.is_before(end)
            && let Some(item) = self.items.peek()
        {
            let against = |other: &T| (self.order)(other, item);
            let is_last = items.last().is_none_or(|last| against(last) == Ordering::Less);
            let place = match is_last {
                true => Err(items.len()),
                false => place_of(items, Hints::from(item.hint()), against),
            };
            if place.is_err() && items.is_full() {
                break;
            }
            let Some(item) = self.items.next() else { break };
            match place {
                Ok(at) => (self.replaced)(std::mem::replace(&mut items[at], item)),
                Err(at) => {
                    items.insert(at, item);
                    below.added += 1;
                }
            }
            below.is_first |= matches!(place, Ok(0) | Err(0));
        }
        below
    }

    fn put_into_inner(&mut self, inner: &mut Inner<T>, end: Option<&T>) -> Below {
        let mut below = Below::default();
        while self.is_before(end)
            && let Some(item) = self.items.peek()
        {
            let hints = Hints::from(item.hint());
            let at = child_of(inner, hints, |other| (self.order)(other, item));
            let Inner { firsts, counts, children } = &mut *inner;
            let child_end = firsts.get(at + 1).or(end);
            let of_child = self.put_below(&mut children[at], child_end);
            let is_full = self.is_before(child_end);
            below.added += of_child.added;
            counts[at] += of_child.added;
            if of_child.is_first
                && let Some(first) = children[at].first()
            {
                // Of an equal item in its place as well: otherwise the old one would be kept alive.
                firsts[at] = first.clone();
                below.is_first |= at == 0;
            }
            if is_full {
                if children.is_full() {
                    break;
                }
                self.make_room(inner, at, RightEdge(end.is_none()));
            }
        }
        below
    }

    /// Makes room for the next item in a full child.
    fn make_room(&mut self, inner: &mut Inner<T>, at: usize, edge: RightEdge) {
        let Some(item) = self.items.peek() else { return };
        let before = |other: &T| (self.order)(other, item) == Ordering::Greater;
        if inner.make_room(at, item, edge, before) {
            match inner.children[at] {
                Node::Leaf(_) => *self.leaves += 1,
                Node::Inner(_) => *self.inners += 1,
            }
        }
    }
}
