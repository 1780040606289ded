//! The table of every setting, from which everything else about settings is derived.
//!
//! A line has the accessor's name and type, then the setting: Ladon's name, its kind, its default,
//! Redis' other names for it, and when it may change (`start`, `restart`: see
//! [`When`](crate::When); otherwise live). Its documentation comment is also the accessor's, the
//! `--help` text and the documents'.

use crate::endpoint::Endpoint;
use crate::kind::Kind;
use crate::output_limits::OutputLimit;
use crate::save_points::SavePoint;
use crate::setting::Setting;
use crate::settings::Settings;
use crate::typed::{
    APPENDFSYNC_NAMES, Access, AuthClients, CertificateUser, ClientMemory, EvictionPolicy,
    FirstChannels, FromSetting, GATE_NAMES, IoBackend, LogFormat, LogLevel,
};
use ladon_record::Gate;
use std::sync::Arc;

macro_rules! settings {
    ($(section $section:literal {
        $($(#[doc = $doc:literal])* $id:ident: $type:ty = $setting:expr;)*
    })*) => {
        /// Which setting; named as its accessor.
        #[allow(non_camel_case_types, missing_docs, reason = "named as the accessors, see there")]
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(usize)]
        pub enum Id { $($($id,)*)* }

        /// Every setting, in the order of the documents.
        pub static TABLE: &[Setting] =
            &[$($($setting.describe(Id::$id, $section, concat!($($doc, "\n"),*)),)*)*];

        /// How many settings there are.
        pub(crate) const COUNT: usize = [$($(Id::$id,)*)*].len();

        impl Settings {
            $($(
                $(#[doc = $doc])*
                #[inline]
                pub fn $id(&self) -> $type {
                    FromSetting::read(self, Id::$id)
                }
            )*)*
        }
    };
}

const MB: i64 = 1 << 20;
const U32_MAX: i64 = u32::MAX as i64;
const I32_MAX: i64 = i32::MAX as i64;

settings! {
    section "Listening and connections" {
        /// Where to listen for the Redis protocol: addresses with a port, or unix sockets; `off`
        /// for nowhere.
        resp: Vec<Endpoint> =
            Setting::new("resp", Kind::Endpoints, "127.0.0.1:6379").apply();
        /// Where to listen for IPROTO, Tarantool's protocol: addresses with a port, or unix
        /// sockets; `off` or nothing for nowhere.
        iproto: Vec<Endpoint> = Setting::new("iproto", Kind::Endpoints, "").apply();
        /// Where to listen for memcached's protocols, text, meta and binary: addresses with a port,
        /// or unix sockets; `off` or nothing for nowhere.
        memcached: Vec<Endpoint> = Setting::new("memcached", Kind::Endpoints, "").apply();
        /// Where to listen for HTTP on the data (commands as JSON, keys, spaces, functions): addresses
        /// with a port, or unix sockets; `off` or nothing for nowhere.
        http: Vec<Endpoint> = Setting::new("http", Kind::Endpoints, "").apply();
        /// Sites whose pages may ask over HTTP (`https://shop.example`), with blanks between them; `*`
        /// for all. A server without a password also takes their names as its own.
        http_cors_origins: String = Setting::text("http-cors-origins", "").apply();
        /// Bytes of a request's body over HTTP that has commands; a value that is written by `PUT` is
        /// bounded by `proto-max-bulk-len`.
        http_max_body: u64 = Setting::memory("http-max-body", 1024, "16mb").apply();
        /// Password of IPROTO's user `admin`; empty for the one in the space `_user`.
        iproto_admin_password: Arc<String> =
            Setting::text("iproto-admin-password", "").sensitive();
        /// File whose content is the password of IPROTO's user `admin`, read at the start.
        iproto_admin_password_file: String =
            Setting::text("iproto-admin-password-file", "").restart();
        /// Where to answer HTTP requests about the server itself (`/metrics`, `/healthz`, `/readyz`,
        /// `/console/`): addresses with a port, or unix sockets; `off` or nothing for nowhere.
        http_admin: Vec<Endpoint> = Setting::new("http-admin", Kind::Endpoints, "").restart();
        /// Password for `/metrics`; if it is empty, the users log in there who may run `INFO`.
        http_admin_password: Arc<String> = Setting::text("http-admin-password", "").sensitive();
        /// Addresses to listen on, without the port; `-` in front of one that may be missing. Sets
        /// a part of `resp`.
        bind: String = Setting::text("bind", "127.0.0.1").part_of("resp").apply();
        /// TCP port of every address; 0 for none. Another way to say a part of `resp`.
        port: u16 = Setting::integer("port", 0, 65535, "6379").part_of("resp").apply();
        /// Path of a unix socket to listen on. Another way to say a part of `resp`.
        unixsocket: String = Setting::text("unixsocket", "").part_of("resp").start();
        /// Permission bits of the unix socket; 0 uses the process' umask.
        unixsocketperm: u32 = Setting::new("unixsocketperm", Kind::Octal, "0").start();
        /// Refuse connections from other machines while no password is set.
        protected_mode: bool = Setting::bool("protected-mode", "yes");
        /// Password of the default user; empty for none.
        requirepass: Arc<String> = Setting::text("requirepass", "").sensitive();
        /// File of the users: one `user NAME RULES` a line. `ACL LOAD` reads it again, `ACL SAVE`
        /// writes it. Empty for none.
        aclfile: String = Setting::text("aclfile", "").start();
        /// Entries that the log of denials (`ACL LOG`) keeps.
        acllog_max_len: usize = Setting::integer("acllog-max-len", 0, i64::MAX, "128");
        /// Which channels a new user may use: `resetchannels` for none, `allchannels`.
        acl_pubsub_default: FirstChannels =
            Setting::choice("acl-pubsub-default", FirstChannels::NAMES, "resetchannels");
        /// Maximum number of connections; one more gets an error and is closed.
        maxclients: usize = Setting::integer("maxclients", 1, U32_MAX, "10000");
        /// Close a connection that was silent for this many seconds; 0 for never.
        timeout: u64 = Setting::integer("timeout", 0, I32_MAX, "0");
        /// Seconds after which the kernel asks a silent peer whether it is still there; 0 for
        /// never. Linux takes no more than the maximum.
        tcp_keepalive: u32 = Setting::integer("tcp-keepalive", 0, 32_767, "300");
        /// Length of the kernel's queue of connections that wait to be accepted.
        tcp_backlog: u32 = Setting::integer("tcp-backlog", 0, I32_MAX, "511").start();
        /// Output that a connection may leave unread, by class: hard limit, soft limit, seconds.
        client_output_buffer_limit: [OutputLimit; 3] = Setting::new(
            "client-output-buffer-limit",
            Kind::OutputLimits,
            "normal 0 0 0 slave 268435456 67108864 60 pubsub 33554432 8388608 60",
        );
        /// Bytes of one connection's requests that were received and not executed yet.
        client_query_buffer_limit: u64 = Setting::memory("client-query-buffer-limit", MB, "1gb");
        /// Memory that replies which clients have not read may take together. Above it, a client
        /// with many of them runs no further requests until it reads; 0 for no limit.
        client_reply_backlog: u64 = Setting::memory("client-reply-backlog", 0, "1gb");
        /// Bytes of one argument.
        proto_max_bulk_len: u64 = Setting::memory("proto-max-bulk-len", MB, "512mb");
        /// Bytes of all connections' buffers together, beyond which the largest are closed;
        /// 0 for no limit, a percentage is one of `maxmemory`.
        maxmemory_clients: ClientMemory =
            Setting::new("maxmemory-clients", Kind::MemoryOrPercent, "0");
    }

    section "TLS" {
        /// TCP port of every address of `bind` for the Redis protocol over TLS; 0 for none.
        tls_port: u16 = Setting::integer("tls-port", 0, 65535, "0").apply();
        /// Where to listen for IPROTO over TLS: addresses with a port, or unix sockets; `off` or
        /// nothing for nowhere.
        iproto_tls: Vec<Endpoint> = Setting::new("iproto-tls", Kind::Endpoints, "").apply();
        /// Where to listen for memcached's protocols over TLS: addresses with a port, or unix
        /// sockets; `off` or nothing for nowhere.
        memcached_tls: Vec<Endpoint> =
            Setting::new("memcached-tls", Kind::Endpoints, "").apply();
        /// Where to listen for HTTP on the data over TLS: addresses with a port, or unix sockets;
        /// `off` or nothing for nowhere.
        http_tls: Vec<Endpoint> = Setting::new("http-tls", Kind::Endpoints, "").apply();
        /// PEM file of the server's certificate, followed by those that lead to its authority. To
        /// set this or another file of TLS again reads all of them again; so does SIGHUP.
        tls_cert_file: String = Setting::text("tls-cert-file", "").names_a_file().apply();
        /// PEM file of the certificate's private key.
        tls_key_file: String = Setting::text("tls-key-file", "").names_a_file().apply();
        /// Password of the key, if it is an encrypted one (PKCS #8).
        tls_key_file_pass: Arc<String> =
            Setting::text("tls-key-file-pass", "").sensitive().apply();
        /// PEM file of the authorities whose certificates clients may show.
        tls_ca_cert_file: String = Setting::text("tls-ca-cert-file", "").names_a_file().apply();
        /// Directory of such PEM files, instead or as well.
        tls_ca_cert_dir: String = Setting::text("tls-ca-cert-dir", "").names_a_file().apply();
        /// Whether clients have to show a certificate: `no` asks for none, `optional` lets in who
        /// shows none, too.
        tls_auth_clients: AuthClients =
            Setting::choice("tls-auth-clients", AuthClients::NAMES, "yes").apply();
        /// Which name of a client's certificate is that of its user (`ACL`), who needs no password
        /// then: `CN`, `URI` (of the subject's other names), or `off` for none. If there is no such
        /// user, or it is off, the client is as one without a certificate.
        tls_auth_clients_user: CertificateUser =
            Setting::choice("tls-auth-clients-user", CertificateUser::NAMES, "off");
        /// Versions of TLS: `TLSv1.2`, `TLSv1.3` or both; empty for both.
        tls_protocols: String = Setting::text("tls-protocols", "").apply();
        /// Cipher suites of TLS 1.3, by OpenSSL's names, with colons between them; empty for all.
        tls_ciphersuites: String = Setting::text("tls-ciphersuites", "").apply();
        /// Cipher suites of TLS 1.2, likewise.
        tls_ciphers: String = Setting::text("tls-ciphers", "").apply();
        /// Whether the server's order of the suites decides, and not the client's.
        tls_prefer_server_ciphers: bool =
            Setting::bool("tls-prefer-server-ciphers", "no").apply();
        /// Whether clients that return may go on with their session, which saves half of the
        /// handshake's cost.
        tls_session_caching: bool = Setting::bool("tls-session-caching", "yes").apply();
        /// Sessions that the server remembers of clients of TLS 1.2 that take no tickets. All others
        /// bring theirs along.
        tls_session_cache_size: usize =
            Setting::integer("tls-session-cache-size", 1, I32_MAX, "20480").apply();
        /// Seconds for which a session's ticket is good, and twice that at most.
        tls_session_cache_timeout: u32 =
            Setting::integer("tls-session-cache-timeout", 1, I32_MAX, "300").apply();
        /// Handshakes that may begin in a second; the others wait. They run aside, and would take
        /// the processor from the requests.
        tls_handshakes_per_second: u32 =
            Setting::integer("tls-handshakes-per-second", 1, 1_000_000, "1000").apply();
    }

    section "Threads" {
        /// Threads that own connections and execute their requests.
        io_threads: usize = Setting::integer("io-threads", 1, 256, CORES).start();
        /// What moves the bytes: `auto` is io_uring where the kernel and the container allow it,
        /// mio (epoll, kqueue) elsewhere.
        io_backend: IoBackend = Setting::choice("io-backend", IoBackend::NAMES, "auto").restart();
        /// How often a second the server does its housekeeping: expiry, timeouts, statistics. A
        /// thread to which nothing happens does it once a second, and in time for what expires.
        hz: u32 = Setting::new("hz", Kind::Clamped { min: 1, max: 500 }, "10");
        /// Whether `hz` grows with the number of connections.
        dynamic_hz: String =
            Setting::fixed("dynamic-hz", "no", "housekeeping runs as often as hz says");
    }

    section "Durability" {
        /// Directory of the log and the checkpoints.
        data: String = Setting::text("data", "./ladon-data").aliases(&["dir"]).restart();
        /// How far a change must have got before a reply that shows it may leave the server: `none`
        /// (memory), `write` (handed to the system), `everysec` (and on the disk within about a
        /// second), `fsync` (on the disk), `quorum` (on the disks of most of the cluster's members).
        gate: Gate = Setting::choice("gate", GATE_NAMES, "everysec");
        /// Redis' way to set the gate: `no` is the gate `none`, `yes` the one that `appendfsync`
        /// says.
        appendonly: bool = Setting::bool("appendonly", "yes").part_of("gate");
        /// Redis' way to set the gate while `appendonly` is `yes`: `always` is the gate `fsync`,
        /// `everysec` is `everysec`, `no` is `write`.
        appendfsync: String = Setting::choice("appendfsync", APPENDFSYNC_NAMES, "everysec").part_of("gate");
        /// Whether syncing pauses during a checkpoint.
        no_appendfsync_on_rewrite: String = Setting::fixed(
            "no-appendfsync-on-rewrite",
            "no",
            "a checkpoint does not loosen the gate",
        );
        /// Whether a log that ends in the middle of a record is cut at the last whole one.
        aof_load_truncated: String = Setting::promise(
            "aof-load-truncated",
            "yes",
            "a torn end of the log is cut and reported; other damage stops the start",
        );
        /// Start although the log is missing or damaged after this LSN, and discard all changes
        /// after it. The message of a start that stops there names the LSN. A loss anywhere else
        /// still stops the start. -1 for none.
        accept_log_loss_after: i64 =
            Setting::integer("accept-log-loss-after", -1, i64::MAX, "-1").restart();
        /// Checkpoint after this many seconds if at least this many keys changed; any of the pairs.
        save: Vec<SavePoint> = Setting::new("save", Kind::SavePoints, "");
        /// Seconds between checkpoints, if anything changed at all; 0 for no limit by time.
        checkpoint_interval: u64 =
            Setting::integer("checkpoint-interval", 0, I32_MAX, "3600");
        /// Bytes of log since the last checkpoint, below which its size starts no new one.
        checkpoint_log_bytes: u64 = Setting::memory("checkpoint-log-bytes", 0, "1gb")
            .aliases(&["auto-aof-rewrite-min-size"]);
        /// A checkpoint starts when the log since the last one has grown to this percentage of it
        /// (and to `checkpoint-log-bytes`); 0 for no limit by size.
        checkpoint_log_percent: u64 =
            Setting::integer("checkpoint-log-percent", 0, I32_MAX, "100")
                .aliases(&["auto-aof-rewrite-percentage"]);
        /// Size at which the log continues in a new file.
        log_segment_bytes: u64 = Setting::memory("log-segment-bytes", MB, "256mb").restart();
        /// Minimum amount of log to keep before the newest checkpoint, unless the disk is short of
        /// space, for readers that return after a pause; whole files are kept.
        log_keep_bytes: u64 =
            Setting::memory("log-keep-bytes", 1, "1mb").aliases(&["repl-backlog-size"]);
        /// Microseconds that loading a key is slowed down by, for tests of loading.
        key_load_delay: String =
            Setting::fixed("key-load-delay", "0", "loading is not slowed down").hidden();
        /// Microseconds that saving a key is slowed down by, for tests of saving.
        rdb_key_save_delay: u64 =
            Setting::integer("rdb-key-save-delay", 0, I32_MAX, "0").hidden();
    }

    section "Memory" {
        /// Bytes that the data may take, see `maxmemory-policy`; 0 for no limit.
        maxmemory: u64 = Setting::memory("maxmemory", 0, "0");
        /// What is evicted when `maxmemory` is reached. `noeviction`: commands that need memory are
        /// refused. `allkeys-...` evict from all keys, `volatile-...` from those that expire: the
        /// least recently used (`lru`) or changed (`lrm`), the least frequently used (`lfu`), those
        /// that expire first (`ttl`), or any (`random`).
        maxmemory_policy: EvictionPolicy =
            Setting::choice("maxmemory-policy", EvictionPolicy::NAMES, "noeviction");
        /// Bytes that open transactions over IPROTO may hold together, besides `maxmemory`: what they
        /// have written, and what others have replaced since that they still see. With more of the
        /// one, they may write no more; with more of the other, those that were opened first end.
        transaction_memory: u64 = Setting::memory("transaction-memory", MB, "256mb");
        /// As `transaction-memory`, of one connection's transactions.
        client_transaction_memory: u64 =
            Setting::memory("client-transaction-memory", MB, "64mb");
        /// Number of keys sampled for each one that is evicted.
        maxmemory_samples: usize = Setting::integer("maxmemory-samples", 1, 64, "5");
        /// How long a command may spend on evictions: 0 to 10 mean up to 500 microseconds, each
        /// step beyond that adds 15 %, 100 is without limit.
        maxmemory_eviction_tenacity: u32 =
            Setting::integer("maxmemory-eviction-tenacity", 0, 100, "10");
        /// How slowly a key's access counter grows (`lfu` policies): the larger, the more uses
        /// each step takes.
        lfu_log_factor: u32 = Setting::integer("lfu-log-factor", 0, I32_MAX, "10");
        /// After how many minutes without use a key's access counter loses one; 0 for never.
        lfu_decay_time: u32 = Setting::integer("lfu-decay-time", 0, I32_MAX, "1");
        /// Whether evicted values are freed in the background.
        lazyfree_lazy_eviction: String = Setting::fixed("lazyfree-lazy-eviction", "yes", LAZY);
    }

    section "Keys and values" {
        /// Databases that `SELECT` knows.
        databases: usize = Setting::integer("databases", 1, 16384, "16").start();
        /// Effort of the background removal of expired keys: at 1 up to a quarter of each thread's
        /// time, and a fiftieth more with each step.
        active_expire_effort: u32 = Setting::integer("active-expire-effort", 1, 10, "1");
        /// Whether expired values are freed in the background.
        lazyfree_lazy_expire: String = Setting::fixed("lazyfree-lazy-expire", "yes", LAZY);
        /// Whether overwritten values are freed in the background.
        lazyfree_lazy_server_del: String = Setting::fixed("lazyfree-lazy-server-del", "yes", LAZY);
        /// Whether `DEL` frees values in the background.
        lazyfree_lazy_user_del: String = Setting::fixed("lazyfree-lazy-user-del", "yes", LAZY);
        /// Whether `FLUSHALL` and `FLUSHDB` free values in the background.
        lazyfree_lazy_user_flush: String = Setting::fixed("lazyfree-lazy-user-flush", "yes", LAZY);
        /// Members up to which a set of integers is kept as a sorted array.
        set_max_intset_entries: usize = Setting::integer("set-max-intset-entries", 0, i64::MAX, "512");
        /// Members up to which any other set is kept packed.
        set_max_listpack_entries: usize =
            Setting::integer("set-max-listpack-entries", 0, i64::MAX, "128");
        /// Bytes of its longest member up to which a set is kept packed.
        set_max_listpack_value: usize =
            Setting::integer("set-max-listpack-value", 0, i64::MAX, "64");
        /// Fields up to which a hash is kept packed.
        hash_max_listpack_entries: usize =
            Setting::integer("hash-max-listpack-entries", 0, i64::MAX, "512")
                .aliases(&["hash-max-ziplist-entries"]);
        /// Bytes of its longest field or value up to which a hash is kept packed.
        hash_max_listpack_value: u64 =
            Setting::memory("hash-max-listpack-value", 0, "64")
                .aliases(&["hash-max-ziplist-value"]);
        /// Maximum size of a list's chunk before the list gets another: a number of elements, or -1
        /// to -5 for 4, 8, 16, 32 or 64 KiB.
        list_max_listpack_size: i64 =
            Setting::integer("list-max-listpack-size", i32::MIN as i64, i32::MAX as i64, "-2")
                .aliases(&["list-max-ziplist-size"]);
        /// How many pieces at each end of a list stay uncompressed; 0 for all. A list keeps the
        /// depth that was set when it got its second piece.
        list_compress_depth: usize =
            Setting::integer("list-compress-depth", 0, i32::MAX as i64, "0");
        /// Members up to which a sorted set is kept packed.
        zset_max_listpack_entries: usize =
            Setting::integer("zset-max-listpack-entries", 0, i64::MAX, "128")
                .aliases(&["zset-max-ziplist-entries"]);
        /// Bytes of its longest member up to which a sorted set is kept packed.
        zset_max_listpack_value: usize =
            Setting::integer("zset-max-listpack-value", 0, i64::MAX, "64")
                .aliases(&["zset-max-ziplist-value"]);
        /// Maximum bytes of a stream's node before the stream gets another; 0 for the largest
        /// possible.
        stream_node_max_bytes: u64 = Setting::memory("stream-node-max-bytes", 0, "4096");
        /// Maximum number of entries of a stream's node before the stream gets another; 0 for any.
        stream_node_max_entries: usize =
            Setting::integer("stream-node-max-entries", 0, i64::MAX, "100");
        /// For how long a stream remembers what an idempotent producer has sent, in seconds. A
        /// stream keeps what it was when it first remembered anything, until `XCFGSET`.
        stream_idmp_duration: u64 = Setting::integer("stream-idmp-duration", 1, 86_400, "100");
        /// Maximum number of idempotent ids that a stream remembers of a producer, likewise.
        stream_idmp_maxsize: usize = Setting::integer("stream-idmp-maxsize", 1, 10_000, "100");
        /// Bytes up to which a HyperLogLog is kept sparse.
        hll_sparse_max_bytes: usize = Setting::memory("hll-sparse-max-bytes", 0, "3000");
        /// Which events of the keyspace are published: `K` and `E` choose the channels (by key, by
        /// event), `S`, `T`, `I`, `V` those for fields of hashes, further letters the classes, `A`
        /// all but `m`, `n`, `o` and `c`. Empty: none.
        notify_keyspace_events: String =
            Setting::new("notify-keyspace-events", Kind::EventClasses, "");
        /// Keys up to which the server remembers which clients have read them (`CLIENT TRACKING`);
        /// beyond that, it tells clients to forget some. 0 for no limit.
        tracking_table_max_keys: usize =
            Setting::integer("tracking-table-max-keys", 0, i64::MAX, "1000000");
    }

    section "Scripts" {
        /// Milliseconds after which a script is slow: clients that need its keys get `BUSY`, and
        /// `SCRIPT KILL` ends it; 0 for never.
        busy_reply_threshold: u64 = Setting::integer("busy-reply-threshold", 0, i64::MAX, "5000")
            .aliases(&["lua-time-limit"]);
    }

    section "Observation" {
        /// Microseconds from which a command's execution enters the slow log; -1 for never.
        commandlog_execution_slower_than: i64 =
            Setting::integer("commandlog-execution-slower-than", -1, i64::MAX, "10000")
                .aliases(&["slowlog-log-slower-than"]);
        /// Entries that the slow log keeps.
        commandlog_slow_execution_max_len: usize =
            Setting::integer("commandlog-slow-execution-max-len", 0, i64::MAX, "128")
                .aliases(&["slowlog-max-len"]);
        /// Bytes from which a request enters the log of large requests; -1 for never.
        commandlog_request_larger_than: i64 =
            Setting::integer("commandlog-request-larger-than", -1, i64::MAX, "1048576");
        /// Entries that the log of large requests keeps.
        commandlog_large_request_max_len: usize =
            Setting::integer("commandlog-large-request-max-len", 0, i64::MAX, "128");
        /// Bytes from which a reply enters the log of large replies; -1 for never.
        commandlog_reply_larger_than: i64 =
            Setting::integer("commandlog-reply-larger-than", -1, i64::MAX, "1048576");
        /// Entries that the log of large replies keeps.
        commandlog_large_reply_max_len: usize =
            Setting::integer("commandlog-large-reply-max-len", 0, i64::MAX, "128");
        /// Milliseconds from which `LATENCY` remembers an event; 0 for never.
        latency_monitor_threshold: u64 =
            Setting::integer("latency-monitor-threshold", 0, i64::MAX, "0");
        /// Whether every command's latency is counted for `INFO latencystats`.
        latency_tracking: bool = Setting::bool("latency-tracking", "yes");
        /// The percentiles that `INFO latencystats` shows.
        latency_tracking_info_percentiles: Vec<f64> = Setting::new(
            "latency-tracking-info-percentiles",
            Kind::Percentiles,
            "50 99 99.9",
        );
        /// How much the server writes to its log file.
        loglevel: LogLevel = Setting::choice("loglevel", LogLevel::NAMES, "notice");
        /// How a message is written: as a line of text, or as an object of JSON in a line.
        logformat: LogFormat = Setting::choice("logformat", LogFormat::NAMES, "text").restart();
        /// File that the server's messages go to; empty for the standard error output. That of a
        /// redis.conf is not used.
        logfile: String = Setting::text("logfile", "").start();
    }

    section "Replication" {
        /// The Ladon whose read replica this server is, as `HOST PORT`; empty for none. What the server
        /// had is replaced by that one's data. `REPLICAOF` changes it.
        replicaof: String = Setting::text("replicaof", "").aliases(&["slaveof"]).start();
        /// The user as whom a replica logs in at the other server; empty for the default one.
        masteruser: String = Setting::text("masteruser", "");
        /// The password with which a replica logs in at the other server; empty for none.
        masterauth: Arc<String> = Setting::text("masterauth", "").sensitive();
        /// Whether a replica speaks TLS with the other server: it takes whom `tls-ca-cert-file` or
        /// `tls-ca-cert-dir` vouches for, and shows `tls-cert-file` if there is one.
        tls_replication: bool = Setting::bool("tls-replication", "no");
        /// Whether the server refuses to change its data, whoever asks: clients get `-READONLY`, and nothing
        /// is evicted or removed because it has expired.
        read_only: bool = Setting::bool("read-only", "no");
        /// Whether clients may read at a replica that does not hear the other server; `no`: they get
        /// `-MASTERDOWN`.
        replica_serve_stale_data: bool = Setting::bool("replica-serve-stale-data", "yes")
            .aliases(&["slave-serve-stale-data"]);
        /// Whether a replica refuses writes.
        replica_read_only: String = Setting::promise(
            "replica-read-only",
            "yes",
            "what a replica wrote would not be the other server's data",
        )
        .aliases(&["slave-read-only"]);
        /// The address of this replica that the other server shows; empty: where it comes from.
        replica_announce_ip: String =
            Setting::text("replica-announce-ip", "").aliases(&["slave-announce-ip"]);
        /// The port of this replica that the other server shows; 0: the first one that it listens on.
        replica_announce_port: u16 = Setting::integer("replica-announce-port", 0, 65535, "0")
            .aliases(&["slave-announce-port"]);
        /// Seconds without a word after which a replica and the other server give each other up.
        repl_timeout: u64 = Setting::integer("repl-timeout", 2, I32_MAX, "60");
        /// Bytes of log that are kept for a replica that is behind, and for an hour if it is gone. One
        /// that lacks more gets all data anew.
        replica_log_max: u64 = Setting::memory("replica-log-max", MB, "8gb");
    }

    section "Cluster" {
        /// Whether the server is a node of a cluster: it takes no data until `ladon cluster create`
        /// or `ladon cluster add-node` has made it a member of one.
        cluster_enabled: bool = Setting::bool("cluster-enabled", "no").start();
        /// Where the other nodes of the cluster reach this one; 0: the port of `resp`, plus 10000.
        cluster_port: u16 = Setting::integer("cluster-port", 0, 65535, "0").restart();
        /// Host name or IP address under which the other nodes and the clients reach this node, as
        /// the cluster's members and its clients are told. Empty: the first address that the server
        /// listens on, if that is one.
        cluster_announce_ip: String = Setting::text("cluster-announce-ip", "").restart();
        /// What the nodes of a cluster prove to each other: the same at each of them.
        cluster_secret: Arc<String> = Setting::text("cluster-secret", "").sensitive().restart();
        /// Whether the nodes of a cluster speak TLS with each other: each has a certificate
        /// (`tls-cert-file`, `tls-key-file`) of the authority in `tls-ca-cert-file`, which has to be the
        /// cluster's own. `cluster-secret` may be empty then.
        tls_cluster: bool = Setting::bool("tls-cluster", "no").restart();
        /// Milliseconds without a word of its leader after which a cluster's members elect another
        /// one, about: it takes between one and two times as long.
        failover_timeout: u64 = Setting::integer("failover-timeout", 50, 60_000, "300").restart();
        /// The name under which clients that ask for a sentinel of Redis find the cluster's leader.
        sentinel_master_name: Arc<String> = Setting::text("sentinel-master-name", "mymaster");
    }

    section "Rights and modes" {
        /// Which clients may use `DEBUG`.
        enable_debug_command: Access =
            Setting::choice("enable-debug-command", Access::NAMES, "no").start();
        /// Which clients may change protected settings.
        enable_protected_configs: String = Setting::fixed(
            "enable-protected-configs",
            "no",
            "no setting is protected: those that could harm are read at start only",
        )
        .start();
        /// Which clients may use `MODULE`.
        enable_module_command: String =
            Setting::fixed("enable-module-command", "no", "Ladon loads no modules").start();
        /// Replicas that must keep up for a write to be accepted; 0 for none. They are the other
        /// members of the cluster, or the read replicas of a server without one.
        min_replicas_to_write: u32 = Setting::integer("min-replicas-to-write", 0, I32_MAX, "0")
            .aliases(&["min-slaves-to-write"]);
        /// Seconds since its last word after which a replica does not keep up; 0 asks for none.
        min_replicas_max_lag: u32 = Setting::integer("min-replicas-max-lag", 0, I32_MAX, "10")
            .aliases(&["min-slaves-max-lag"]);
        /// Whether the server leaves its terminal.
        daemonize: String = Setting::fixed(
            "daemonize",
            "no",
            "Ladon stays in the foreground; let a service manager keep it",
        )
        .start();
    }
}

/// The default that only the machine knows: one per core that this process may use.
pub(crate) const CORES: &str = "cores";

const LAZY: &str = "values are always freed in the background";

/// The setting of this name, Ladon's or Redis', in any case.
pub fn lookup(name: &str) -> Option<&'static Setting> {
    TABLE.iter().find(|setting| setting.has_name(name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn names_are_unique_and_every_setting_is_described() {
        let mut seen = HashSet::new();
        for (index, setting) in TABLE.iter().enumerate() {
            assert_eq!(setting.id as usize, index);
            assert!(setting.doc.len() > 10, "{} needs a description", setting.name);
            assert_eq!(format!("{:?}", setting.id).replace('_', "-"), setting.name);
            for name in setting.names() {
                assert!(seen.insert(name), "{name} is there twice");
                assert_eq!(name, name.to_ascii_lowercase());
            }
        }
        assert_eq!(COUNT, TABLE.len());
    }
}
