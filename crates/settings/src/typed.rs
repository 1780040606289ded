//! From stored values to the types of the accessors.

use crate::endpoint::{self, Endpoint};
use crate::percentiles;
use crate::save_points::{self, SavePoint};
use crate::settings::Settings;
use crate::table::Id;
use ladon_record::Gate;
use std::sync::Arc;

/// A type that an accessor gives. Numbers cost one relaxed load.
pub(crate) trait FromSetting {
    fn read(settings: &Settings, id: Id) -> Self;
}

/// How much the server writes to its log, most first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LogLevel {
    /// Everything.
    Debug,
    /// Much that is rarely useful.
    Verbose,
    /// What an operator wants to see.
    Notice,
    /// Only what is important or critical.
    Warning,
    /// Nothing.
    Nothing,
}

impl LogLevel {
    pub(crate) const ALL: [LogLevel; 5] = [
        LogLevel::Debug,
        LogLevel::Verbose,
        LogLevel::Notice,
        LogLevel::Warning,
        LogLevel::Nothing,
    ];
    pub(crate) const NAMES: &[&str] = &["debug", "verbose", "notice", "warning", "nothing"];
}

/// How the server writes its log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFormat {
    /// For people.
    Text,
    /// For programs.
    Json,
}

impl LogFormat {
    pub(crate) const ALL: [LogFormat; 2] = [LogFormat::Text, LogFormat::Json];
    pub(crate) const NAMES: &[&str] = &["text", "json"];
}

/// What moves the bytes of connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IoBackend {
    /// io_uring where the kernel and the container allow it, else mio.
    Auto,
    /// io_uring, or the server does not start.
    IoUring,
    /// epoll or kqueue.
    Mio,
}

impl IoBackend {
    pub(crate) const ALL: [IoBackend; 3] = [IoBackend::Auto, IoBackend::IoUring, IoBackend::Mio];
    pub(crate) const NAMES: &[&str] = &["auto", "io_uring", "mio"];
}

/// Which clients may use a dangerous command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// None.
    No,
    /// All.
    Yes,
    /// Connections from this machine: loopback addresses and unix sockets.
    Local,
}

impl Access {
    pub(crate) const ALL: [Access; 3] = [Access::No, Access::Yes, Access::Local];
    pub(crate) const NAMES: &[&str] = &["no", "yes", "local"];
}

/// Which channels a new user may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FirstChannels {
    /// None.
    None,
    /// All.
    All,
}

impl FirstChannels {
    pub(crate) const ALL: [FirstChannels; 2] = [FirstChannels::None, FirstChannels::All];
    pub(crate) const NAMES: &[&str] = &["resetchannels", "allchannels"];

    /// Whether every channel is allowed.
    pub fn allows_all(self) -> bool {
        self == FirstChannels::All
    }
}

/// Whether clients of TLS have to show a certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuthClients {
    /// They are asked for none.
    No,
    /// Those without are not let in.
    Yes,
    /// They may.
    Optional,
}

impl AuthClients {
    pub(crate) const ALL: [AuthClients; 3] =
        [AuthClients::No, AuthClients::Yes, AuthClients::Optional];
    pub(crate) const NAMES: &[&str] = &["no", "yes", "optional"];
}

/// Which name of a client's certificate is that of its user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CertificateUser {
    /// None.
    Off,
    /// The subject's common name.
    CommonName,
    /// A URI among the subject's other names.
    Uri,
}

impl CertificateUser {
    pub(crate) const ALL: [CertificateUser; 3] =
        [CertificateUser::Off, CertificateUser::CommonName, CertificateUser::Uri];
    pub(crate) const NAMES: &[&str] = &["off", "CN", "URI"];
}

/// What is evicted when `maxmemory` is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "Redis' names, see the setting")]
pub enum EvictionPolicy {
    VolatileLru,
    VolatileLfu,
    VolatileRandom,
    VolatileTtl,
    VolatileLrm,
    AllKeysLru,
    AllKeysLfu,
    AllKeysRandom,
    AllKeysLrm,
    NoEviction,
}

impl EvictionPolicy {
    pub(crate) const ALL: [EvictionPolicy; 10] = [
        EvictionPolicy::VolatileLru,
        EvictionPolicy::VolatileLfu,
        EvictionPolicy::VolatileRandom,
        EvictionPolicy::VolatileTtl,
        EvictionPolicy::VolatileLrm,
        EvictionPolicy::AllKeysLru,
        EvictionPolicy::AllKeysLfu,
        EvictionPolicy::AllKeysRandom,
        EvictionPolicy::AllKeysLrm,
        EvictionPolicy::NoEviction,
    ];
    pub(crate) const NAMES: &[&str] = &[
        "volatile-lru",
        "volatile-lfu",
        "volatile-random",
        "volatile-ttl",
        "volatile-lrm",
        "allkeys-lru",
        "allkeys-lfu",
        "allkeys-random",
        "allkeys-lrm",
        "noeviction",
    ];

    /// The policy's name.
    pub fn name(self) -> &'static str {
        Self::NAMES[self as usize]
    }
}

/// How much memory all clients' buffers together may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientMemory {
    /// Any amount.
    Unlimited,
    /// This many bytes.
    Bytes(u64),
    /// This part of `maxmemory`; no limit while `maxmemory` is none.
    PercentOfMaxmemory(u8),
}

/// The names of the gates, in the order of their numbers.
pub(crate) const GATE_NAMES: &[&str] = &["none", "write", "everysec", "fsync", "quorum"];

/// `appendfsync`'s words, in the order in which Redis' error names them.
pub(crate) const APPENDFSYNC_NAMES: &[&str] = &["everysec", "always", "no"];

macro_rules! number {
    ($($type:ty)*) => {$(
        impl FromSetting for $type {
            #[inline]
            fn read(settings: &Settings, id: Id) -> $type {
                settings.number(id) as $type
            }
        }
    )*};
}

number!(i64 u64 u32 u16 usize);

impl FromSetting for bool {
    #[inline]
    fn read(settings: &Settings, id: Id) -> bool {
        settings.number(id) != 0
    }
}

impl FromSetting for Gate {
    #[inline]
    fn read(settings: &Settings, id: Id) -> Gate {
        // No number but a gate's is ever stored; the strictest is the safe answer.
        Gate::from_u8(settings.number(id) as u8).unwrap_or(Gate::Quorum)
    }
}

macro_rules! word {
    ($($type:ident)*) => {$(
        impl FromSetting for $type {
            #[inline]
            fn read(settings: &Settings, id: Id) -> $type {
                let last = $type::ALL.len() - 1;
                $type::ALL[(settings.number(id) as usize).min(last)]
            }
        }
    )*};
}

word!(LogLevel LogFormat IoBackend Access AuthClients CertificateUser EvictionPolicy FirstChannels);

impl FromSetting for ClientMemory {
    #[inline]
    fn read(settings: &Settings, id: Id) -> ClientMemory {
        match settings.number(id) {
            0 => ClientMemory::Unlimited,
            bytes @ 1.. => ClientMemory::Bytes(bytes as u64),
            percent => ClientMemory::PercentOfMaxmemory(percent.unsigned_abs() as u8),
        }
    }
}

impl FromSetting for String {
    fn read(settings: &Settings, id: Id) -> String {
        settings.text(id).to_string()
    }
}

impl FromSetting for Arc<String> {
    fn read(settings: &Settings, id: Id) -> Arc<String> {
        settings.text(id)
    }
}

// The stored text is canonical, so that reading it cannot fail.

impl FromSetting for Vec<Endpoint> {
    fn read(settings: &Settings, id: Id) -> Vec<Endpoint> {
        endpoint::parse_list(&settings.text(id)).unwrap_or_default()
    }
}

impl FromSetting for Vec<SavePoint> {
    fn read(settings: &Settings, id: Id) -> Vec<SavePoint> {
        save_points::parse(&settings.text(id)).unwrap_or_default()
    }
}

impl FromSetting for Vec<f64> {
    fn read(settings: &Settings, id: Id) -> Vec<f64> {
        percentiles::parse(&settings.text(id)).unwrap_or_default()
    }
}

impl FromSetting for [crate::OutputLimit; 3] {
    fn read(settings: &Settings, id: Id) -> Self {
        crate::output_limits::parse(&settings.text(id), Default::default()).unwrap_or_default()
    }
}
