//! A place of its own for the processes: namespaces of users, networks, mounts and processes.
//!
//! The program starts itself once more through `unshare` (util-linux). Inside, it may make networks and
//! mounts that nobody outside sees, with no more rights outside than before; when it ends, in whichever
//! way, the kernel ends and removes all of that.

use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitCode, Stdio};

/// Tells the program that it is inside.
pub(crate) const INSIDE: &str = "LADON_CRASH_INSIDE";

/// With rights of its own first, and as root where users have no namespaces.
const WAYS: [&[&str]; 2] = [&["--user", "--map-root-user"], &[]];
const PARTS: [&str; 5] = ["--net", "--mount", "--pid", "--fork", "--kill-child"];

/// Whether this process is inside.
pub(crate) fn is_inside() -> bool {
    std::env::var_os(INSIDE).is_some()
}

/// Starts the program once more, inside, and waits for its end. `None`: that is not possible here.
pub(crate) fn again() -> Option<ExitCode> {
    let way = WAYS.iter().find(|way| can(way))?;
    let me = std::env::current_exe().ok()?;
    let status = Command::new("unshare")
        .args(*way)
        .args(PARTS)
        .arg(me)
        .args(std::env::args_os().skip(1))
        .env(INSIDE, "yes")
        .status()
        .ok()?;
    let code = status.code().or(status.signal().map(|signal| 128 + signal)).unwrap_or(1);
    Some(ExitCode::from(u8::try_from(code).unwrap_or(1)))
}

/// Whether a network can be made that way.
fn can(way: &[&str]) -> bool {
    let made = "mount -t tmpfs tmpfs /run && ip link set lo up && ip netns add try \
                && ip link add try type veth peer name eth0 netns try \
                && nsenter --net=/run/netns/try true";
    let tried = Command::new("unshare")
        .args(way)
        .args(PARTS)
        .args(["sh", "-c", made])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    tried.is_ok_and(|status| status.success())
}
