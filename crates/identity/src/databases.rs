//! Which databases a selector may use: `db=`, `alldbs` and `resetdbs` of Valkey 9.1
//! (<https://valkey.io/topics/acl/>, "Database permissions").

use crate::rule_error::RuleError;
use std::collections::BTreeSet;

/// Numbers that a rule may name, whether or not the server has that many databases: nodes with
/// different settings can share their users (<https://github.com/valkey-io/valkey/pull/2309>).
const NUMBER_MAX: u32 = i32::MAX as u32;

/// The databases of a selector. A new one may use all of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum DatabaseRights {
    /// `alldbs`.
    #[default]
    All,
    /// `db=0,1`; none after `resetdbs`.
    These(BTreeSet<u32>),
}

impl DatabaseRights {
    /// The rights of a rule `db=LIST`, which replace the ones before.
    pub(crate) fn of(list: &[u8]) -> Result<DatabaseRights, RuleError> {
        let numbers: Result<BTreeSet<u32>, RuleError> =
            list.split(|&byte| byte == b',').map(number).collect();
        Ok(DatabaseRights::These(numbers?))
    }

    /// Whether every database may be used.
    pub fn is_all(&self) -> bool {
        *self == DatabaseRights::All
    }

    /// Whether this database may be used.
    pub fn allows(&self, database: u32) -> bool {
        match self {
            DatabaseRights::All => true,
            DatabaseRights::These(numbers) => numbers.contains(&database),
        }
    }

    /// Whether all of a server's databases, 0 to `count - 1`, may be used. A list that names each
    /// of them will do (<https://github.com/valkey-io/valkey/pull/3215>).
    pub fn allows_each(&self, count: u32) -> bool {
        (0..count).all(|database| self.allows(database))
    }

    /// The rule that makes these rights.
    pub fn description(&self) -> String {
        match self {
            DatabaseRights::All => "alldbs".to_owned(),
            DatabaseRights::These(numbers) if numbers.is_empty() => "resetdbs".to_owned(),
            DatabaseRights::These(numbers) => {
                let numbers: Vec<String> = numbers.iter().map(u32::to_string).collect();
                format!("db={}", numbers.join(","))
            }
        }
    }
}

fn number(text: &[u8]) -> Result<u32, RuleError> {
    if text.is_empty() {
        return Err(RuleError::Syntax);
    }
    let digits = text.iter().all(u8::is_ascii_digit).then_some(text);
    let number = digits.and_then(|digits| std::str::from_utf8(digits).ok()?.parse().ok());
    number.filter(|&number| number <= NUMBER_MAX).ok_or(RuleError::DatabaseOutOfRange)
}
