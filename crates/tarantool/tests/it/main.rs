//! Tests of the crate from outside.

mod generated_document;
