//! All integration tests of this crate in one binary: linking is most of what they cost.

mod attached_servers;
mod common;
mod dialects_on_real_servers;
mod load_on_real_redis;
mod measured_section;
mod module_graph;
mod other_load_tools;
mod own_clients;
mod plain_store;
mod report_in_a_browser;
mod reports;
mod run_on_odd_servers;
mod run_small;
mod systems_start;
mod wrong_answer_stops_the_load;
