//! Code that several families share.

pub(crate) mod databases;
pub(crate) mod element_expiry;
pub(crate) mod element_random;
pub(crate) mod float;
pub(crate) mod help;
pub(crate) mod hyperloglog;
pub(crate) mod long_string;
pub(crate) mod made_bulk;
pub(crate) mod scan;
pub(crate) mod scores;
pub(crate) mod tuple;
