//! Testing only: bugs that the simulated replicas must notice.

/// A bug of a replica, or of the server that it follows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Planted {
    /// None.
    #[default]
    Nothing,
    /// A record is applied in parts, and clients read meanwhile.
    #[cfg(test)]
    HalfRecord,
    /// A replica gets what is not on the other server's disk yet.
    #[cfg(test)]
    NotDurable,
    /// A replica goes on at its position, whichever run of the log it has.
    #[cfg(test)]
    RunsIgnored,
}

impl Planted {
    pub(super) fn halves_records(self) -> bool {
        #[cfg(test)]
        return self == Planted::HalfRecord;
        #[cfg(not(test))]
        false
    }

    pub(super) fn gives_what_is_not_durable(self) -> bool {
        #[cfg(test)]
        return self == Planted::NotDurable;
        #[cfg(not(test))]
        false
    }

    pub(super) fn ignores_runs(self) -> bool {
        #[cfg(test)]
        return self == Planted::RunsIgnored;
        #[cfg(not(test))]
        false
    }
}
