//! Prefixes of keys: which of them a key begins with, in one walk along the key, however many there
//! are.
//!
//! A radix tree whose nodes are in one vector, so that neither a walk nor a drop recurses: a client
//! chooses how deep it is.

use smallvec::SmallVec;

/// Index of the root.
const ROOT: u32 = 0;

#[derive(Debug)]
struct Node<T> {
    /// What leads here from the parent.
    label: Box<[u8]>,
    parent: u32,
    /// By the first byte of their labels, in order.
    children: SmallVec<[(u8, u32); 2]>,
    value: Option<T>,
}

/// Values by prefix.
#[derive(Debug)]
pub(super) struct PrefixTree<T> {
    nodes: Vec<Node<T>>,
    /// Nodes that are not in use.
    free: Vec<u32>,
    len: usize,
}

impl<T> Default for PrefixTree<T> {
    fn default() -> Self {
        let (label, children) = (Box::default(), SmallVec::new());
        let root = Node { label, parent: ROOT, children, value: None };
        PrefixTree { nodes: vec![root], free: Vec::new(), len: 0 }
    }
}

/// Length of what both begin with.
fn common(a: &[u8], b: &[u8]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}

impl<T> PrefixTree<T> {
    fn node(&self, at: u32) -> &Node<T> {
        &self.nodes[at as usize]
    }

    fn node_mut(&mut self, at: u32) -> &mut Node<T> {
        &mut self.nodes[at as usize]
    }

    fn child(&self, at: u32, first: u8) -> Option<u32> {
        let children = &self.node(at).children;
        let found = children.binary_search_by_key(&first, |&(first, _)| first);
        found.ok().map(|index| children[index].1)
    }

    /// Visits the length and value of each prefix of `key`, shortest first.
    pub(super) fn for_each_prefix_of(&self, key: &[u8], mut visit: impl FnMut(usize, &T)) {
        let (mut at, mut length) = (ROOT, 0);
        loop {
            if let Some(value) = &self.node(at).value {
                visit(length, value);
            }
            let Some(&first) = key.get(length) else { return };
            let Some(child) = self.child(at, first) else { return };
            let label = &self.node(child).label;
            if !key[length..].starts_with(label) {
                return;
            }
            (at, length) = (child, length + label.len());
        }
    }

    fn find(&self, prefix: &[u8]) -> Option<u32> {
        let (mut at, mut rest) = (ROOT, prefix);
        while let Some(&first) = rest.first() {
            at = self.child(at, first)?;
            rest = rest.strip_prefix(&*self.node(at).label)?;
        }
        Some(at)
    }

    /// The value of exactly this prefix.
    pub(super) fn get(&self, prefix: &[u8]) -> Option<&T> {
        self.node(self.find(prefix)?).value.as_ref()
    }

    /// As `get`, to change it.
    pub(super) fn get_mut(&mut self, prefix: &[u8]) -> Option<&mut T> {
        let at = self.find(prefix)?;
        self.node_mut(at).value.as_mut()
    }

    /// The value of a prefix, made if there is none.
    pub(super) fn get_or_default(&mut self, prefix: &[u8]) -> &mut T
    where
        T: Default,
    {
        let at = self.make(prefix);
        self.len += usize::from(self.node(at).value.is_none());
        self.node_mut(at).value.get_or_insert_with(T::default)
    }

    /// The node of a prefix, made if there is none.
    fn make(&mut self, prefix: &[u8]) -> u32 {
        let (mut at, mut rest) = (ROOT, prefix);
        while let Some(&first) = rest.first() {
            let Some(child) = self.child(at, first) else {
                return self.add(at, rest);
            };
            let shared = common(&self.node(child).label, rest);
            at = if shared < self.node(child).label.len() {
                self.split(child, shared)
            } else {
                child
            };
            rest = &rest[shared..];
        }
        at
    }

    fn add(&mut self, parent: u32, label: &[u8]) -> u32 {
        let node = Node { label: label.into(), parent, children: SmallVec::new(), value: None };
        let at = match self.free.pop() {
            Some(at) => {
                *self.node_mut(at) = node;
                at
            }
            None => {
                self.nodes.push(node);
                (self.nodes.len() - 1) as u32
            }
        };
        self.link(parent, label[0], at);
        at
    }

    /// Makes `child` the parent's child for this byte.
    fn link(&mut self, parent: u32, first: u8, child: u32) {
        let children = &mut self.node_mut(parent).children;
        match children.binary_search_by_key(&first, |&(first, _)| first) {
            Ok(index) => children[index].1 = child,
            Err(index) => children.insert(index, (first, child)),
        }
    }

    /// Puts a node between `below` and its parent, after `length` bytes of the label.
    fn split(&mut self, below: u32, length: usize) -> u32 {
        let (label, parent) =
            (std::mem::take(&mut self.node_mut(below).label), self.node(below).parent);
        let between = self.add(parent, &label[..length]);
        self.node_mut(below).label = label[length..].into();
        self.node_mut(below).parent = between;
        self.link(between, label[length], below);
        between
    }

    /// Removes a prefix.
    pub(super) fn remove(&mut self, prefix: &[u8]) -> Option<T> {
        let at = self.find(prefix)?;
        let value = self.node_mut(at).value.take()?;
        self.len -= 1;
        self.tidy(at);
        Some(value)
    }

    /// Removes a node that neither has a value nor branches.
    fn tidy(&mut self, at: u32) {
        let node = self.node(at);
        if at == ROOT || node.value.is_some() {
            return;
        }
        let parent = node.parent;
        match *node.children {
            [] => {
                let first = node.label[0];
                self.node_mut(parent).children.retain(|&mut (other, _)| other != first);
                self.release(at);
                // It may have been the second of two.
                if self.node(parent).children.len() == 1 {
                    self.tidy(parent);
                }
            }
            [(_, child)] => {
                let label = [&*node.label, &*self.node(child).label].concat();
                self.link(parent, label[0], child);
                self.node_mut(child).label = label.into();
                self.node_mut(child).parent = parent;
                self.release(at);
            }
            _ => {}
        }
    }

    fn release(&mut self, at: u32) {
        let node = self.node_mut(at);
        (node.label, node.children) = (Box::default(), SmallVec::new());
        self.free.push(at);
        if self.len == 0 {
            *self = PrefixTree::default();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn it_finds_what_a_scan_finds() {
        let mut random = 7u64;
        let mut next = |max: usize| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (random >> 33) as usize % max
        };
        for letters in [1, 2, 3] {
            let (mut tree, mut model) = (PrefixTree::<usize>::default(), BTreeMap::new());
            for step in 1..3000 {
                let prefix: Vec<u8> = (0..next(7)).map(|_| b'a' + next(letters) as u8).collect();
                if next(2) == 0 {
                    *tree.get_or_default(&prefix) = step;
                    model.insert(prefix, step);
                } else {
                    assert_eq!(tree.get(&prefix), model.get(&prefix));
                    assert_eq!(tree.remove(&prefix), model.remove(&prefix));
                }
                let key: Vec<u8> = (0..next(9)).map(|_| b'a' + next(letters) as u8).collect();
                let mut found = Vec::new();
                tree.for_each_prefix_of(&key, |length, &value| found.push((length, value)));
                let mut expected: Vec<_> = model
                    .iter()
                    .filter(|(prefix, _)| key.starts_with(prefix))
                    .map(|(prefix, &value)| (prefix.len(), value))
                    .collect();
                expected.sort_unstable();
                assert_eq!(found, expected);
                let used = tree.nodes.len() - tree.free.len();
                assert!(used <= 2 * model.len() + 1, "{used} nodes for {}", model.len());
            }
            model.keys().for_each(|prefix| assert!(tree.remove(prefix).is_some()));
            assert!(tree.len == 0 && tree.nodes.len() == 1);
        }
    }

    #[test]
    fn a_deep_tree_does_not_recurse() {
        let long = vec![b'x'; 100_000];
        let mut tree = PrefixTree::<usize>::default();
        (0..long.len())
            .step_by(10)
            .for_each(|length| *tree.get_or_default(&long[..length]) = length);
        let mut count = 0;
        tree.for_each_prefix_of(&long, |_, _| count += 1);
        assert_eq!(count, 10_000);
        drop(tree);
    }
}
