//! The metrics: where each comes from, under Ladon's names and under those of redis_exporter.

mod census;
mod out;
mod own;
mod redis;

pub(crate) use census::Census;
pub(crate) use own::memory_kinds;

use crate::texts::{Format, Names};
use ladon_kernel::node::Node;
use out::Out;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, prometheus_text, text};
use prometheus_client::registry::Registry;
use std::fmt;
use std::sync::Arc;

/// What the library asks for its metrics.
struct Metrics {
    node: Arc<Node>,
    census: Arc<Census>,
    names: Names,
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Metrics").field("names", &self.names).finish_non_exhaustive()
    }
}

impl Collector for Metrics {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let mut out = Out(encoder);
        match self.names {
            Names::Ladon => own::encode(&self.node, &self.census, &mut out),
            Names::Redis => redis::encode(&self.node, &self.census, &mut out),
        }
    }
}

/// All metrics of the node as they are now.
pub(crate) fn text(node: &Arc<Node>, census: &Arc<Census>, names: Names, format: Format) -> String {
    let mut registry = Registry::default();
    let (node, census) = (Arc::clone(node), Arc::clone(census));
    registry.register_collector(Box::new(Metrics { node, census, names }));
    let mut text = String::new();
    let done = match format {
        Format::Prometheus => prometheus_text::encode(&mut text, &registry),
        Format::OpenMetrics => text::encode(&mut text, &registry),
    };
    // Writing to a string cannot fail.
    debug_assert!(done.is_ok(), "a metric cannot be written");
    text
}
