//! Scripts run by a host that knows a few commands.

mod bounds;
mod check_libraries;
mod corpus;
mod errors;
mod host;
mod libraries;
mod libraries_of_functions;
mod reused_words;
mod sandbox;
mod values;
