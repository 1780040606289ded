//! The type of the primary indexes of spaces: another type is measured as another system.

use crate::operation::OperationKind;

/// See the module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Primary {
    /// In order.
    Tree,
    /// By hash.
    Hash,
}

impl Primary {
    /// Its name in the definition of an index.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Tree => "tree",
            Self::Hash => "hash",
        }
    }

    /// Whether a space with such an index can do operations of this kind.
    ///
    /// # Errors
    /// Why not, in words for the report.
    pub fn can_do(self, kind: OperationKind) -> Result<(), String> {
        match (self, kind) {
            (Self::Hash, OperationKind::ScanFrom) => {
                Err("no scan in the order of keys: the index is a HASH".to_owned())
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_index_without_an_order_refuses_and_only_scans() {
        for kind in OperationKind::ALL {
            assert!(Primary::Tree.can_do(kind).is_ok(), "{kind}");
            assert_eq!(
                Primary::Hash.can_do(kind).is_err(),
                kind == OperationKind::ScanFrom,
                "{kind}"
            );
        }
    }
}
