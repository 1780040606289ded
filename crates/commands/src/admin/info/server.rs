//! The sections `Server` and `CPU`.

use super::text::Text;
use ladon_kernel::ctx::Ctx;
use ladon_kernel::node::{LADON_VERSION, REDIS_VERSION};
use ladon_settings::Endpoint;

pub(super) fn write(ctx: &mut Ctx<'_>, text: &mut Text) {
    let (node, settings) = (ctx.node, &ctx.node.settings);
    let facts = node.process.facts();
    let uptime_seconds = ctx.now_ms.saturating_sub(node.started_ms) / 1000;
    text.section("Server");
    text.field("redis_version", REDIS_VERSION);
    text.field("redis_git_sha1", "00000000");
    text.field("redis_git_dirty", 0);
    text.field("redis_build_id", "0000000000000000");
    text.field("redis_mode", "standalone");
    text.field("ladon_version", LADON_VERSION);
    text.field("os", facts.os);
    text.field("arch_bits", usize::BITS);
    text.field("monotonic_clock", "POSIX clock_gettime");
    text.field("multiplexing_api", &node.io_backend);
    text.field("process_id", facts.process_id);
    text.field("process_supervised", "no");
    text.field("run_id", &*node.run_id.lock());
    // As in Redis, where there is no other.
    text.field(
        "tcp_port",
        if settings.port() == 0 { settings.tls_port() } else { settings.port() },
    );
    text.field("server_time_usec", node.clock.unix_us());
    text.field("uptime_in_seconds", uptime_seconds);
    text.field("uptime_in_days", uptime_seconds / 86_400);
    text.field("hz", settings.hz());
    text.field("configured_hz", settings.hz());
    // Seconds in 24 bits, as Redis counts its LRU clock.
    text.field("lru_clock", (ctx.now_ms / 1000) & 0xff_ffff);
    text.field("executable", facts.executable);
    let config_file = settings.source().map(|source| source.path.display().to_string());
    text.field("config_file", config_file.unwrap_or_default());
    text.flag("io_threads_active", node.settings.io_threads() > 1);
    let listeners = [
        (settings.resp(), "tcp", "unix"),
        (settings.resp_tls(), "tls", "tls"),
        (settings.iproto(), "iproto", "iproto"),
        (settings.iproto_tls(), "iproto-tls", "iproto-tls"),
        (settings.memcached(), "memcached", "memcached"),
        (settings.memcached_tls(), "memcached-tls", "memcached-tls"),
    ];
    let listeners = listeners.iter().flat_map(|(endpoints, tcp, unix)| {
        endpoints.iter().map(|endpoint| listener_of(endpoint, tcp, unix))
    });
    for (index, listener) in listeners.enumerate() {
        text.field(&format!("listener{index}"), listener);
    }
}

/// The names are those of a listener's kind, on a port and on a unix socket.
fn listener_of(endpoint: &Endpoint, tcp: &str, unix: &str) -> String {
    match endpoint {
        Endpoint::Tcp { host, port, .. } => format!("name={tcp},bind={host},port={port}"),
        Endpoint::Unix(path) => format!("name={unix},bind={}", path.display()),
    }
}

pub(super) fn write_cpu(ctx: &mut Ctx<'_>, text: &mut Text) {
    let facts = ctx.node.process.facts();
    text.section("CPU");
    for (name, time) in [("used_cpu_sys", facts.cpu_system), ("used_cpu_user", facts.cpu_user)] {
        text.field(name, format_args!("{:.6}", time.as_secs_f64()));
    }
    // Nothing is ever forked.
    text.field("used_cpu_sys_children", "0.000000");
    text.field("used_cpu_user_children", "0.000000");
}
