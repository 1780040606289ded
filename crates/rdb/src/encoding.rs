//! How a value is encoded: the byte before its key.

use std::fmt;

use crate::dialect::Dialect;

macro_rules! encodings {
    ($($(#[doc = $doc:literal])* $name:ident = $byte:literal, $of:literal, $form:literal;)*) => {
        /// The encodings that are read.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Encoding {
            $($(#[doc = $doc])* $name,)*
        }

        impl Encoding {
            /// All of them.
            pub const ALL: &[Encoding] = &[$(Encoding::$name),*];

            /// The byte of a file that means it.
            pub fn byte(self) -> u8 {
                match self { $(Encoding::$name => $byte,)* }
            }

            /// The type, as `TYPE` calls it.
            pub fn type_name(self) -> &'static str {
                match self { $(Encoding::$name => $of,)* }
            }

            /// The encoding's name.
            pub fn form_name(self) -> &'static str {
                match self { $(Encoding::$name => $form,)* }
            }
        }
    };
}

encodings! {
    /// One string.
    String = 0, "string", "plain";
    /// Count and elements.
    List = 1, "list", "plain";
    /// Count and members.
    Set = 2, "set", "plain";
    /// Count, members and scores in decimal.
    SortedSetDecimal = 3, "zset", "decimal scores";
    /// Count, fields and values.
    Hash = 4, "hash", "plain";
    /// Count, members and scores of 64 bits.
    SortedSet = 5, "zset", "plain";
    /// A zipmap (up to Redis 2.4).
    HashZipmap = 9, "hash", "zipmap";
    /// A ziplist (up to Redis 3.0).
    ListZiplist = 10, "list", "ziplist";
    /// An intset.
    SetIntset = 11, "set", "intset";
    /// A ziplist (up to Redis 6).
    SortedSetZiplist = 12, "zset", "ziplist";
    /// A ziplist (up to Redis 6).
    HashZiplist = 13, "hash", "ziplist";
    /// Ziplists (up to Redis 6).
    ListQuicklist = 14, "list", "quicklist";
    /// A stream of Redis 5.
    Stream1 = 15, "stream", "listpacks";
    /// A listpack.
    HashListpack = 16, "hash", "listpack";
    /// A listpack.
    SortedSetListpack = 17, "zset", "listpack";
    /// Listpacks and long elements.
    ListQuicklist2 = 18, "list", "quicklist 2";
    /// A stream of Redis 7.0.
    Stream2 = 19, "stream", "listpacks 2";
    /// A listpack.
    SetListpack = 20, "set", "listpack";
    /// A stream of Redis 7.2.
    Stream3 = 21, "stream", "listpacks 3";
    /// A hash whose fields expire, of Redis 7.4's release candidates.
    HashMetadataPreGa = 22, "hash", "metadata, before 7.4";
    /// The same as a listpack.
    HashListpackExPreGa = 23, "hash", "listpack with expiry, before 7.4";
    /// A hash whose fields expire.
    HashMetadata = 24, "hash", "metadata";
    /// The same as a listpack.
    HashListpackEx = 25, "hash", "listpack with expiry";
    /// A hash whose fields expire, of Valkey 9.
    HashValkey = 22, "hash", "with expiry, of Valkey";
}

impl Encoding {
    /// The encoding that `byte` means in a file of `dialect`.
    pub fn of(byte: u8, dialect: Dialect) -> Option<Encoding> {
        let is_meant = |encoding: &&Encoding| {
            let of_valkey = **encoding == Encoding::HashValkey;
            let of_redis = !of_valkey && encoding.byte() >= 22;
            encoding.byte() == byte
                && match dialect {
                    Dialect::Redis => !of_valkey,
                    Dialect::Valkey => !of_redis,
                }
        };
        Encoding::ALL.iter().find(is_meant).copied()
    }
}

impl fmt::Display for Encoding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.type_name(), self.form_name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_mean_what_their_dialect_says() {
        for &encoding in Encoding::ALL {
            let by_redis = Encoding::of(encoding.byte(), Dialect::Redis);
            let by_valkey = Encoding::of(encoding.byte(), Dialect::Valkey);
            assert!([by_redis, by_valkey].contains(&Some(encoding)), "{encoding}");
        }
        assert_eq!(Encoding::of(22, Dialect::Valkey), Some(Encoding::HashValkey));
        assert_eq!(Encoding::of(22, Dialect::Redis), Some(Encoding::HashMetadataPreGa));
        assert_eq!(Encoding::of(25, Dialect::Valkey), None);
        for none in [6, 7, 8, 26, 243, 255] {
            assert_eq!(Encoding::of(none, Dialect::Redis), None);
        }
    }
}
