//! What a run can read off the machine from outside a server: CPU time, memory, the machine itself.

pub mod cores;
pub mod cpu;
pub mod machine;
pub mod memory;
pub mod usage;
