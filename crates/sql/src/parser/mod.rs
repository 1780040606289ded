//! A text to a statement, by recursive descent. Depth, and the numbers of parameters, columns,
//! tables and compounds, are limited.

mod expression;
mod select;
pub(crate) mod statement;
mod trigger;

use crate::ast::Statement;
use crate::error::{self, Error};
use crate::lexer::{self, Kind, Token};

/// Nesting of expressions and of queries.
pub(crate) const DEPTH_MAX: usize = 200;
/// Parameters of a statement.
pub(crate) const PARAMETERS_MAX: usize = 65_000;
/// Columns of a table, of a result, and of a list.
pub(crate) const COLUMNS_MAX: usize = 2_000;
/// Queries that one compound has.
pub(crate) const COMPOUNDS_MAX: usize = 30;
/// Tables that one query joins.
pub(crate) const TABLES_MAX: usize = 64;
/// Nesting of what the parser calls itself for: its stack is the thread's.
const RECURSION_MAX: usize = 100;

/// Words that are no names unless they are quoted.
const RESERVED: &[&str] = &[
    "ALL",
    "ALTER",
    "ANALYZE",
    "AND",
    "ANY",
    "AS",
    "ASC",
    "ASENSITIVE",
    "BEGIN",
    "BETWEEN",
    "BINARY",
    "BLOB",
    "BOOL",
    "BOOLEAN",
    "BOTH",
    "BY",
    "CALL",
    "CASE",
    "CHAR",
    "CHARACTER",
    "CHECK",
    "COLLATE",
    "COLUMN",
    "COMMIT",
    "CONDITION",
    "CONNECT",
    "CONSTRAINT",
    "CREATE",
    "CROSS",
    "CURRENT",
    "CURRENT_DATE",
    "CURRENT_TIME",
    "CURRENT_TIMESTAMP",
    "CURRENT_USER",
    "CURSOR",
    "DATE",
    "DATETIME",
    "DECIMAL",
    "DECLARE",
    "DEFAULT",
    "DELETE",
    "DENSE_RANK",
    "DESC",
    "DESCRIBE",
    "DETERMINISTIC",
    "DISTINCT",
    "DOUBLE",
    "DROP",
    "EACH",
    "ELSE",
    "ELSEIF",
    "END",
    "ESCAPE",
    "EXCEPT",
    "EXISTS",
    "EXPLAIN",
    "FALSE",
    "FETCH",
    "FLOAT",
    "FOR",
    "FOREIGN",
    "FROM",
    "FULL",
    "FUNCTION",
    "GET",
    "GRANT",
    "GROUP",
    "HAVING",
    "IF",
    "IMMEDIATE",
    "IN",
    "INDEX",
    "INNER",
    "INOUT",
    "INSENSITIVE",
    "INSERT",
    "INT",
    "INTEGER",
    "INTERSECT",
    "INTO",
    "IS",
    "ITERATE",
    "JOIN",
    "LEADING",
    "LEAVE",
    "LEFT",
    "LIKE",
    "LOCALTIME",
    "LOCALTIMESTAMP",
    "LOOP",
    "MATCH",
    "NATURAL",
    "NOT",
    "NULL",
    "NUM",
    "NUMBER",
    "NUMERIC",
    "OF",
    "ON",
    "OR",
    "ORDER",
    "OUT",
    "OUTER",
    "OVER",
    "PARTIAL",
    "PARTITION",
    "PRAGMA",
    "PRECISION",
    "PRIMARY",
    "PROCEDURE",
    "RANGE",
    "RANK",
    "READS",
    "REAL",
    "RECURSIVE",
    "REFERENCES",
    "RELEASE",
    "RENAME",
    "REPEAT",
    "REPLACE",
    "RESIGNAL",
    "RETURN",
    "REVOKE",
    "RIGHT",
    "ROLLBACK",
    "ROW",
    "ROWS",
    "ROW_NUMBER",
    "SAVEPOINT",
    "SCALAR",
    "SELECT",
    "SENSITIVE",
    "SET",
    "SIGNAL",
    "SIMPLE",
    "SMALLINT",
    "SPECIFIC",
    "SQL",
    "START",
    "STRING",
    "SYSTEM",
    "TABLE",
    "TEXT",
    "THEN",
    "TO",
    "TRAILING",
    "TRANSACTION",
    "TRIGGER",
    "TRIM",
    "TRUE",
    "TRUNCATE",
    "UNION",
    "UNIQUE",
    "UNKNOWN",
    "UNSIGNED",
    "UPDATE",
    "USER",
    "USING",
    "VALUES",
    "VARBINARY",
    "VARCHAR",
    "VIEW",
    "WHEN",
    "WHENEVER",
    "WHERE",
    "WHILE",
    "WITH",
];

/// Reserved words at whose end Tarantool's parser finds them in the place of a name.
const LATE: [&str; 8] =
    ["BINARY", "CHARACTER", "END", "MATCH", "RELEASE", "RENAME", "REPLACE", "SMALLINT"];

/// A parsed text.
pub(crate) struct Parsed {
    pub(crate) statement: Statement,
    /// The names of its parameters, with the sign in front; `None` of a `?`.
    pub(crate) parameters: Vec<Option<String>>,
}

/// Parses a text of one statement.
///
/// # Errors
/// Those of the syntax.
pub(crate) fn parse(text: &[u8]) -> Result<Parsed, Error> {
    let tokens = lexer::tokens(text)?;
    let mut parser =
        Parser { text, tokens, at: 0, parameters: Vec::new(), recursion: 0, is_in_trigger: false };
    while parser.takes_sign(";") {}
    if parser.token().kind == Kind::End {
        let message = "Failed to execute an empty SQL statement";
        return Err(error::make(error::SQL_STATEMENT_EMPTY, message));
    }
    let statement = parser.statement()?;
    while parser.takes_sign(";") {}
    if parser.token().kind != Kind::End {
        return Err(parser.unexpected());
    }
    Ok(Parsed { statement, parameters: parser.parameters })
}

/// Where the parser is in its text.
pub(crate) struct Parser<'a> {
    text: &'a [u8],
    tokens: Vec<Token>,
    at: usize,
    parameters: Vec<Option<String>>,
    recursion: usize,
    /// RAISE may be used here.
    is_in_trigger: bool,
}

impl Parser<'_> {
    fn token(&self) -> Token {
        self.tokens[self.at]
    }

    fn bytes_of(&self, token: Token) -> &[u8] {
        &self.text[token.start..token.end]
    }

    /// The token so many places ahead; the end if there is none.
    fn ahead(&self, places: usize) -> Token {
        self.tokens[(self.at + places).min(self.tokens.len() - 1)]
    }

    fn step(&mut self) {
        self.at = (self.at + 1).min(self.tokens.len() - 1);
    }

    fn is_word_token(&self, token: Token, word: &str) -> bool {
        token.kind == Kind::Word && self.bytes_of(token).eq_ignore_ascii_case(word.as_bytes())
    }

    fn is_word(&self, word: &str) -> bool {
        self.is_word_token(self.token(), word)
    }

    fn is_word_ahead(&self, places: usize, word: &str) -> bool {
        self.is_word_token(self.ahead(places), word)
    }

    #[inline]
    fn is_sign(&self, sign: &str) -> bool {
        self.token().kind == Kind::Sign && is_same_sign(self.bytes_of(self.token()), sign)
    }

    fn is_sign_ahead(&self, places: usize, sign: &str) -> bool {
        let token = self.ahead(places);
        token.kind == Kind::Sign && is_same_sign(self.bytes_of(token), sign)
    }

    fn takes(&mut self, word: &str) -> bool {
        let is_there = self.is_word(word);
        if is_there {
            self.step();
        }
        is_there
    }

    /// Takes words that follow each other, or none of them.
    fn takes_all(&mut self, words: &[&str]) -> bool {
        let are_there =
            words.iter().enumerate().all(|(places, word)| self.is_word_ahead(places, word));
        if are_there {
            words.iter().for_each(|_| self.step());
        }
        are_there
    }

    fn takes_sign(&mut self, sign: &str) -> bool {
        let is_there = self.is_sign(sign);
        if is_there {
            self.step();
        }
        is_there
    }

    fn expect(&mut self, word: &str) -> Result<(), Error> {
        if self.takes(word) { Ok(()) } else { Err(self.unexpected()) }
    }

    fn expect_sign(&mut self, sign: &str) -> Result<(), Error> {
        if self.takes_sign(sign) { Ok(()) } else { Err(self.unexpected()) }
    }

    /// The error that the token here is not what was to come. At the end, that is the last one.
    fn unexpected(&self) -> Error {
        let token = self.token();
        let is_end = token.kind == Kind::End;
        let named = if is_end && self.at > 0 { self.tokens[self.at - 1] } else { token };
        let word = self.bytes_of(named);
        // Signs of 2.11 only are none to 2.6.
        if named.kind == Kind::Sign && matches!(word, b"[" | b"]" | b"{" | b"}" | b":") {
            return error::unrecognized(self.text, named.start, named.end);
        }
        // The first words of a text are no keywords yet to Tarantool's parser.
        if named.kind == Kind::Word && is_reserved(word) && self.at > 1 {
            let at = if is_end { self.text.len() } else { named.start };
            return error::reserved(self.text, at, word);
        }
        error::near(self.text, named.start, named.end)
    }

    /// A name.
    fn name(&mut self) -> Result<String, Error> {
        let token = self.token();
        let bytes = self.bytes_of(token);
        let name = match token.kind {
            Kind::Quoted => text_of(&lexer::unquoted(bytes)),
            Kind::Word if !is_reserved(bytes) => text_of(bytes).to_uppercase(),
            Kind::Word if LATE.iter().any(|word| self.is_word(word)) && self.at > 1 => {
                return Err(error::reserved(self.text, token.end, bytes));
            }
            _ => return Err(self.unexpected()),
        };
        self.step();
        Ok(name)
    }

    /// Names in parentheses.
    fn names(&mut self) -> Result<Vec<String>, Error> {
        self.expect_sign("(")?;
        let mut names = vec![self.name()?];
        while self.takes_sign(",") {
            names.push(self.name()?);
            check_columns(names.len())?;
        }
        self.expect_sign(")")?;
        Ok(names)
    }

    fn is_name(&self) -> bool {
        self.is_name_token(self.token())
    }

    fn is_name_token(&self, token: Token) -> bool {
        token.kind == Kind::Quoted || token.kind == Kind::Word && !is_reserved(self.bytes_of(token))
    }

    /// Runs what may come back to itself.
    fn deeper<T>(&mut self, run: impl FnOnce(&mut Self) -> Result<T, Error>) -> Result<T, Error> {
        if self.recursion >= RECURSION_MAX {
            return Err(error::limit("Nesting of expressions", self.recursion + 1, RECURSION_MAX));
        }
        self.recursion += 1;
        let result = run(self);
        self.recursion -= 1;
        result
    }

    /// The text from a token on to the one before the next.
    fn text_since(&self, first: usize) -> String {
        let last = self.tokens[self.at.max(first + 1) - 1];
        text_of(&self.text[self.tokens[first].start..last.end])
    }
}

pub(crate) fn check_columns(count: usize) -> Result<(), Error> {
    if count > COLUMNS_MAX {
        return Err(error::limit("The number of columns", count, COLUMNS_MAX));
    }
    Ok(())
}

/// Where the reserved words of each first letter begin, and where the last one's end.
const FIRST_LETTERS: [u8; 27] = {
    let mut begins = [0; 27];
    let mut letter = 0;
    while letter < 27 {
        let mut at = 0;
        while at < RESERVED.len() && RESERVED[at].as_bytes()[0] < b'A' + letter as u8 {
            at += 1;
        }
        begins[letter] = at as u8;
        letter += 1;
    }
    begins
};

fn is_reserved(word: &[u8]) -> bool {
    let Some(letter) = word.first().map(|first| first.to_ascii_uppercase().wrapping_sub(b'A'))
    else {
        return false;
    };
    let Some([begin, end]) = FIRST_LETTERS.get(usize::from(letter)..).and_then(<[u8]>::first_chunk)
    else {
        return false;
    };
    let words = &RESERVED[usize::from(*begin)..usize::from(*end)];
    words.iter().any(|reserved| reserved.as_bytes().eq_ignore_ascii_case(word))
}

/// Signs have one byte or two, of which the first tells most apart.
#[inline]
fn is_same_sign(bytes: &[u8], sign: &str) -> bool {
    match (bytes, sign.as_bytes()) {
        ([a], [b]) => a == b,
        ([a, c], [b, d]) => a == b && c == d,
        _ => false,
    }
}

fn text_of(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reserved_words_are_found_by_their_first_letters() {
        assert!(RESERVED.is_sorted() && RESERVED.len() < 256);
        for word in RESERVED {
            assert!(is_reserved(word.to_lowercase().as_bytes()), "{word}");
        }
        for other in ["", "x", "selec", "selects", "_", "9", "zz", "\u{e9}", "[", "@"] {
            assert!(!is_reserved(other.as_bytes()), "{other}");
        }
    }
}
