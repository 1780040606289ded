//! Writing metrics: one call for each name.

use ladon_kernel::statistics::histogram::HistogramSum;
use prometheus_client::encoding::{
    DescriptorEncoder, EncodeCounterValue, EncodeGaugeValue, EncodeLabelSet, NoLabelSet,
};
use prometheus_client::metrics::MetricType;
use std::fmt::Error;
use std::ops::RangeInclusive;

/// The bounds of histograms are these powers of two in nanoseconds: from about a microsecond to
/// about seventeen seconds.
const BOUNDS: RangeInclusive<u32> = 10..=34;

/// Where metrics are written to.
pub(super) struct Out<'a>(pub(super) DescriptorEncoder<'a>);

impl Out<'_> {
    /// What goes up and down.
    pub(super) fn gauge(
        &mut self,
        name: &str,
        help: &str,
        value: impl EncodeGaugeValue,
    ) -> Result<(), Error> {
        self.0.encode_descriptor(name, help, None, MetricType::Gauge)?.encode_gauge(&value)
    }

    /// What only grows; `_total` is added to the name.
    pub(super) fn counter(
        &mut self,
        name: &str,
        help: &str,
        value: impl EncodeCounterValue,
    ) -> Result<(), Error> {
        let mut encoder = self.0.encode_descriptor(name, help, None, MetricType::Counter)?;
        encoder.encode_counter::<NoLabelSet, _, u64>(&value, None)
    }

    /// A gauge for each value of some labels; nothing without values.
    pub(super) fn gauges<L: EncodeLabelSet, V: EncodeGaugeValue>(
        &mut self,
        name: &str,
        help: &str,
        values: impl IntoIterator<Item = (L, V)>,
    ) -> Result<(), Error> {
        let mut values = values.into_iter().peekable();
        if values.peek().is_none() {
            return Ok(());
        }
        let mut encoder = self.0.encode_descriptor(name, help, None, MetricType::Gauge)?;
        values.try_for_each(|(labels, value)| encoder.encode_family(&labels)?.encode_gauge(&value))
    }

    /// A counter for each value of some labels; nothing without values.
    pub(super) fn counters<L: EncodeLabelSet, V: EncodeCounterValue>(
        &mut self,
        name: &str,
        help: &str,
        values: impl IntoIterator<Item = (L, V)>,
    ) -> Result<(), Error> {
        let mut values = values.into_iter().peekable();
        if values.peek().is_none() {
            return Ok(());
        }
        let mut encoder = self.0.encode_descriptor(name, help, None, MetricType::Counter)?;
        values.try_for_each(|(labels, value)| {
            encoder.encode_family(&labels)?.encode_counter::<NoLabelSet, _, u64>(&value, None)
        })
    }

    /// How long something took, one histogram.
    pub(super) fn durations(
        &mut self,
        name: &str,
        help: &str,
        (counts, nanoseconds): (&HistogramSum, u64),
    ) -> Result<(), Error> {
        let mut encoder = self.0.encode_descriptor(name, help, None, MetricType::Histogram)?;
        let (sum, buckets) = (seconds(nanoseconds), buckets(counts));
        encoder.encode_histogram::<NoLabelSet>(sum, counts.count(), &buckets, None)
    }

    /// As `durations`, a histogram for each value of some labels.
    pub(super) fn all_durations<'a>(
        &mut self,
        name: &str,
        help: &str,
        label: &'static str,
        values: impl IntoIterator<Item = (&'a str, HistogramSum, u64)>,
    ) -> Result<(), Error> {
        let mut values = values.into_iter().peekable();
        if values.peek().is_none() {
            return Ok(());
        }
        let mut encoder = self.0.encode_descriptor(name, help, None, MetricType::Histogram)?;
        values.try_for_each(|(value, counts, nanoseconds)| {
            let (sum, buckets) = (seconds(nanoseconds), buckets(&counts));
            let labels = [(label, value)];
            let mut one = encoder.encode_family(&labels)?;
            one.encode_histogram::<NoLabelSet>(sum, counts.count(), &buckets, None)
        })
    }
}

pub(super) fn seconds(nanoseconds: u64) -> f64 {
    nanoseconds as f64 / 1e9
}

/// (upper bound in seconds, number of durations between it and the bound before).
fn buckets(counts: &HistogramSum) -> Vec<(f64, u64)> {
    let between = counts.between_powers_of_two(BOUNDS);
    let bounds = BOUNDS.map(|exponent| seconds(1 << exponent)).chain([f64::INFINITY]);
    bounds.zip(between).collect()
}
