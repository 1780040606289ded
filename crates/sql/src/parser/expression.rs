//! Expressions, by precedence.

use super::{DEPTH_MAX, PARAMETERS_MAX, Parser, check_columns, text_of};
use crate::ast::{Binary, Call, Expr, Unary};
use crate::error::{self, Error};
use crate::functions;
use crate::lexer::{self, Kind};
use crate::value::{INTEGER_MAX, INTEGER_MIN, Value};
use ladon_space::FieldType;

/// An expression and its depth.
type Deep = (Expr, usize);

/// Operators from the weakest to the strongest, of levels that are plain.
const LEVELS: [&[(&str, Binary)]; 6] = [
    &[
        ("<", Binary::Less),
        ("<=", Binary::LessEqual),
        (">", Binary::Greater),
        (">=", Binary::GreaterEqual),
    ],
    &[
        ("&", Binary::BitAnd),
        ("|", Binary::BitOr),
        ("<<", Binary::ShiftLeft),
        (">>", Binary::ShiftRight),
    ],
    &[("+", Binary::Add), ("-", Binary::Subtract)],
    &[("*", Binary::Multiply), ("/", Binary::Divide), ("%", Binary::Remainder)],
    &[("||", Binary::Concat)],
    &[],
];

const EQUALITIES: [(&str, Binary); 4] =
    [("=", Binary::Equal), ("==", Binary::Equal), ("<>", Binary::Unequal), ("!=", Binary::Unequal)];

/// Types by their names in casts and columns.
pub(super) fn kind_named(word: &str) -> Option<FieldType> {
    Some(match word {
        "BOOL" | "BOOLEAN" => FieldType::Boolean,
        "INT" | "INTEGER" => FieldType::Integer,
        "UNSIGNED" => FieldType::Unsigned,
        "NUMBER" => FieldType::Number,
        "DOUBLE" => FieldType::Double,
        "STRING" | "TEXT" | "VARCHAR" => FieldType::String,
        "VARBINARY" => FieldType::Varbinary,
        "SCALAR" => FieldType::Scalar,
        "DEC" | "DECIMAL" => FieldType::Decimal,
        "UUID" => FieldType::Uuid,
        "DATETIME" => FieldType::Datetime,
        "INTERVAL" => FieldType::Interval,
        "ARRAY" => FieldType::Array,
        "MAP" => FieldType::Map,
        "ANY" => FieldType::Any,
        _ => return None,
    })
}

/// `x = 1 OR x = 2` as `x IN (1, 2)`, which reads keys.
fn joined_by_or(a: Expr, b: Expr) -> Expr {
    /// The column that is compared with numbers, and these.
    fn parts(expr: &Expr) -> Option<(&Expr, Vec<&Expr>)> {
        let is_number = |expr: &Expr| matches!(expr, Expr::Literal(Value::Int(_)));
        match expr {
            Expr::Binary(Binary::Equal, column, number) if is_number(number) => {
                Some((&**column, vec![&**number]))
            }
            Expr::InList(column, list, false) if list.iter().all(is_number) => {
                Some((&**column, list.iter().collect()))
            }
            _ => None,
        }
        .filter(|(column, _)| matches!(column, Expr::Column(..)))
    }
    if let (Some((of_a, in_a)), Some((of_b, in_b))) = (parts(&a), parts(&b))
        && let (Expr::Column(table_a, name_a), Expr::Column(table_b, name_b)) = (of_a, of_b)
        && (table_a, name_a) == (table_b, name_b)
        && in_a.len() + in_b.len() <= super::COLUMNS_MAX
    {
        let list = in_a.into_iter().chain(in_b).cloned().collect();
        return Expr::InList(boxed(of_a.clone()), list, false);
    }
    Expr::Binary(Binary::Or, boxed(a), boxed(b))
}

/// Digits of an integer in hexadecimal.
const HEX_DIGITS_MAX: usize = 16;

/// A call of a function that has no name to be called by.
fn made(name: &str, arguments: Vec<Expr>) -> Expr {
    Expr::Call(Call { name: name.to_owned(), arguments, is_distinct: false, is_star: false })
}

fn boxed(expr: Expr) -> Box<Expr> {
    Box::new(expr)
}

fn above(depth: usize) -> Result<usize, Error> {
    match depth < DEPTH_MAX {
        true => Ok(depth + 1),
        false => Err(error::limit("Number of nodes in expression tree", depth + 1, DEPTH_MAX)),
    }
}

impl Parser<'_> {
    pub(super) fn expr(&mut self) -> Result<Expr, Error> {
        self.or().map(|(expr, _)| expr)
    }

    fn binary(op: Binary, (a, a_depth): Deep, (b, b_depth): Deep) -> Result<Deep, Error> {
        let depth = above(a_depth.max(b_depth))?;
        Ok((Expr::Binary(op, boxed(a), boxed(b)), depth))
    }

    fn either((a, a_depth): Deep, (b, b_depth): Deep) -> Result<Deep, Error> {
        let depth = above(a_depth.max(b_depth))?;
        Ok((joined_by_or(a, b), depth))
    }

    fn or(&mut self) -> Result<Deep, Error> {
        self.deeper(|parser| {
            let mut left = parser.and()?;
            while parser.takes("OR") {
                left = Self::either(left, parser.and()?)?;
            }
            Ok(left)
        })
    }

    fn and(&mut self) -> Result<Deep, Error> {
        let mut left = self.not()?;
        while self.takes("AND") {
            left = Self::binary(Binary::And, left, self.not()?)?;
        }
        Ok(left)
    }

    fn not(&mut self) -> Result<Deep, Error> {
        if self.is_word("NOT") && !self.is_word_ahead(1, "EXISTS") {
            self.step();
            let (inner, depth) = self.deeper(Self::not)?;
            return Ok((Expr::Unary(Unary::Not, boxed(inner)), above(depth)?));
        }
        self.equality()
    }

    /// `=`, `IS`, `IN`, `LIKE`, `BETWEEN` and what is like them.
    fn equality(&mut self) -> Result<Deep, Error> {
        let mut left = self.level(0)?;
        loop {
            let sign = EQUALITIES.iter().find(|(sign, _)| self.is_sign(sign));
            if let Some((_, op)) = sign {
                self.step();
                left = Self::binary(*op, left, self.level(0)?)?;
                continue;
            }
            let is_negated = self.is_word("NOT")
                && ["IN", "LIKE", "BETWEEN", "NULL"].iter().any(|it| self.is_word_ahead(1, it));
            if is_negated {
                self.step();
            }
            left = match () {
                () if self.takes("IS") => self.is_null(left)?,
                () if self.takes("IN") => self.in_set(left, is_negated)?,
                () if self.takes("LIKE") => self.like(left, is_negated)?,
                () if self.takes("BETWEEN") => self.between(left, is_negated)?,
                () => return Ok(left),
            };
        }
    }

    fn is_null(&mut self, (left, depth): Deep) -> Result<Deep, Error> {
        let has_to_be = !self.takes("NOT");
        if !self.takes("NULL") && !self.takes("UNKNOWN") {
            return Err(self.unexpected());
        }
        Ok((Expr::IsNull(boxed(left), has_to_be), above(depth)?))
    }

    fn in_set(&mut self, (left, depth): Deep, is_negated: bool) -> Result<Deep, Error> {
        if !self.is_sign("(") {
            let source = self.table_as_select()?;
            return Ok((Expr::InSelect(boxed(left), Box::new(source), is_negated), above(depth)?));
        }
        self.expect_sign("(")?;
        if self.is_select() {
            let select = self.select()?;
            self.expect_sign(")")?;
            return Ok((Expr::InSelect(boxed(left), Box::new(select), is_negated), above(depth)?));
        }
        let mut list = Vec::new();
        let mut most = depth;
        if !self.is_sign(")") {
            loop {
                let (expr, depth) = self.or()?;
                most = most.max(depth);
                list.push(expr);
                if !self.takes_sign(",") {
                    break;
                }
            }
        }
        self.expect_sign(")")?;
        Ok((Expr::InList(boxed(left), list, is_negated), above(most)?))
    }

    fn like(&mut self, (left, a): Deep, is_negated: bool) -> Result<Deep, Error> {
        let (pattern, b) = self.level(0)?;
        let escape = match self.takes("ESCAPE") {
            true => Some(boxed(self.level(0)?.0)),
            false => None,
        };
        Ok((Expr::Like(boxed(left), boxed(pattern), escape, is_negated), above(a.max(b))?))
    }

    fn between(&mut self, (left, a): Deep, is_negated: bool) -> Result<Deep, Error> {
        let (low, b) = self.level(0)?;
        self.expect("AND")?;
        let (high, c) = self.level(0)?;
        let depth = above(a.max(b).max(c))?;
        Ok((Expr::Between(Box::new([left, low, high]), is_negated), depth))
    }

    fn level(&mut self, at: usize) -> Result<Deep, Error> {
        let operators = LEVELS[at];
        if operators.is_empty() {
            return self.collated();
        }
        let mut left = self.level(at + 1)?;
        while let Some((_, op)) = operators.iter().find(|(sign, _)| self.is_sign(sign)) {
            self.step();
            left = Self::binary(*op, left, self.level(at + 1)?)?;
        }
        Ok(left)
    }

    pub(super) fn collated(&mut self) -> Result<Deep, Error> {
        let (mut expr, mut depth) = self.prefixed()?;
        while self.takes("COLLATE") {
            expr = Expr::Collate(boxed(expr), self.name()?);
            depth = above(depth)?;
        }
        Ok((expr, depth))
    }

    fn prefixed(&mut self) -> Result<Deep, Error> {
        for (sign, op) in [("-", Unary::Minus), ("+", Unary::Plus), ("~", Unary::BitNot)] {
            if self.takes_sign(sign) {
                if op == Unary::Minus && self.token().kind == Kind::Integer {
                    let literal = self.integer(true)?;
                    return Ok((literal, 1));
                }
                let (inner, depth) = self.deeper(Self::collated)?;
                return Ok((Expr::Unary(op, boxed(inner)), above(depth)?));
            }
        }
        let (mut expr, mut depth) = self.primary()?;
        while self.takes_sign("[") {
            let (key, found) = self.or()?;
            self.expect_sign("]")?;
            depth = above(depth.max(found))?;
            expr = made(functions::ITEM, vec![expr, key]);
        }
        Ok((expr, depth))
    }

    /// `[a, b]`.
    fn array(&mut self) -> Result<Deep, Error> {
        let (mut items, mut depth) = (Vec::new(), 1);
        while !self.takes_sign("]") {
            let (item, found) = self.or()?;
            depth = depth.max(found);
            items.push(item);
            check_columns(items.len())?;
            if !self.takes_sign(",") {
                self.expect_sign("]")?;
                break;
            }
        }
        Ok((made(functions::ARRAY, items), above(depth)?))
    }

    /// `{a: b, c: d}`.
    fn map(&mut self) -> Result<Deep, Error> {
        let (mut items, mut depth) = (Vec::new(), 1);
        while !self.takes_sign("}") {
            let (key, of_key) = self.or()?;
            self.expect_sign(":")?;
            let (value, of_value) = self.or()?;
            depth = depth.max(of_key).max(of_value);
            items.extend([key, value]);
            check_columns(items.len() / 2)?;
            if !self.takes_sign(",") {
                self.expect_sign("}")?;
                break;
            }
        }
        Ok((made(functions::MAP, items), above(depth)?))
    }

    fn integer(&mut self, is_negative: bool) -> Result<Expr, Error> {
        let token = self.token();
        let digits = text_of(self.bytes_of(token));
        let parsed = match digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X")) {
            Some(hex) if hex.trim_start_matches('0').len() > HEX_DIGITS_MAX => {
                let message = format!(
                    "Hex literal {digits} length {} exceeds the supported limit ({HEX_DIGITS_MAX})",
                    hex.len()
                );
                return Err(error::make(error::HEX_LITERAL_MAX, message));
            }
            Some(hex) => i128::from_str_radix(&format!("0{}", hex.trim_start_matches('0')), 16),
            None => digits.parse(),
        };
        let sign = if is_negative { -1 } else { 1 };
        let value = parsed.ok().map(|value: i128| value * sign);
        match value.filter(|value| (INTEGER_MIN..=INTEGER_MAX).contains(value)) {
            Some(value) => {
                self.step();
                Ok(Expr::Literal(Value::Int(value)))
            }
            None => {
                let sign = if is_negative { "-" } else { "" };
                let message = format!(
                    "Integer literal {sign}{digits} exceeds the supported range \
                     [{INTEGER_MIN}, {INTEGER_MAX}]"
                );
                Err(error::make(error::INT_LITERAL_MAX, message))
            }
        }
    }

    fn literal(&mut self) -> Result<Option<Expr>, Error> {
        let token = self.token();
        let bytes = self.bytes_of(token);
        let value = match token.kind {
            Kind::Integer => return self.integer(false).map(Some),
            Kind::Float => match text_of(bytes).parse() {
                Ok(value) => Value::Double(value),
                Err(_) => return Err(self.unexpected()),
            },
            Kind::Text => Value::Str(lexer::unquoted(bytes).into()),
            Kind::Blob => {
                let digits = &bytes[2..bytes.len() - 1];
                let digit = |byte: u8| char::from(byte).to_digit(16).unwrap_or(0) as u8;
                let pairs = digits.chunks_exact(2).map(|it| digit(it[0]) << 4 | digit(it[1]));
                Value::Bin(pairs.collect())
            }
            Kind::Word if self.is_word("NULL") || self.is_word("UNKNOWN") => Value::Null,
            Kind::Word if self.is_word("TRUE") => Value::Bool(true),
            Kind::Word if self.is_word("FALSE") => Value::Bool(false),
            _ => return Ok(None),
        };
        self.step();
        Ok(Some(Expr::Literal(value)))
    }

    fn parameter(&mut self) -> Result<Expr, Error> {
        let token = self.token();
        let bytes = self.bytes_of(token);
        let name = (token.kind == Kind::Named).then(|| text_of(bytes));
        if bytes.first() == Some(&b'#') {
            return Err(error::unrecognized(self.text, token.start, token.start + 1));
        }
        if let Some(digits) = name.as_deref().and_then(|name| name.strip_prefix('$')) {
            if digits.bytes().all(|byte| byte.is_ascii_digit()) {
                return self.numbered(digits);
            }
            return Err(error::generic("Index of binding slots must start from 1"));
        }
        self.step();
        if name.is_some()
            && let Some(at) = self.parameters.iter().position(|other| *other == name)
        {
            return Ok(Expr::Parameter(at));
        }
        self.add_parameters(1)?;
        let at = self.parameters.len() - 1;
        self.parameters[at] = name;
        Ok(Expr::Parameter(at))
    }

    /// `$7`.
    fn numbered(&mut self, digits: &str) -> Result<Expr, Error> {
        let number: usize = digits.parse().unwrap_or(usize::MAX);
        if number == 0 {
            return Err(error::generic("Index of binding slots must start from 1"));
        }
        self.add_parameters(number.saturating_sub(self.parameters.len()))?;
        self.parameters[number - 1] = Some(format!("${number}"));
        self.step();
        Ok(Expr::Parameter(number - 1))
    }

    fn add_parameters(&mut self, count: usize) -> Result<(), Error> {
        let all = self.parameters.len().saturating_add(count);
        if all > PARAMETERS_MAX {
            let message = format!("SQL bind parameter limit reached: {PARAMETERS_MAX}");
            return Err(error::make(error::SQL_BIND_PARAMETER_MAX, message));
        }
        self.parameters.resize(all, None);
        Ok(())
    }

    fn primary(&mut self) -> Result<Deep, Error> {
        if let Some(literal) = self.literal()? {
            return Ok((literal, 1));
        }
        if matches!(self.token().kind, Kind::Question | Kind::Named) {
            return Ok((self.parameter()?, 1));
        }
        if self.is_sign("(") {
            return self.parenthesized();
        }
        if self.takes_sign("[") {
            return self.deeper(Self::array);
        }
        if self.takes_sign("{") {
            return self.deeper(Self::map);
        }
        if self.takes("CASE") {
            return self.case();
        }
        if self.is_word("CAST") && self.is_sign_ahead(1, "(") {
            return self.cast();
        }
        if self.takes_all(&["NOT", "EXISTS"]) {
            let select = self.select_in_parentheses()?;
            return Ok((Expr::Unary(Unary::Not, boxed(Expr::Exists(Box::new(select)))), 2));
        }
        if self.takes("EXISTS") {
            return Ok((Expr::Exists(Box::new(self.select_in_parentheses()?)), 1));
        }
        if self.is_word("RAISE") && self.is_sign_ahead(1, "(") {
            self.step();
            return Ok((self.raise()?, 1));
        }
        if self.is_word("TRIM") && self.is_sign_ahead(1, "(") {
            return self.trim();
        }
        let is_call = self.is_sign_ahead(1, "(");
        let may_be_reserved = ["CHAR", "REPLACE"].iter().any(|word| self.is_word(word));
        if is_call && (self.is_name() || may_be_reserved) {
            return self.call();
        }
        let name = self.name()?;
        if !self.takes_sign(".") {
            return Ok((Expr::Column(None, name), 1));
        }
        let column = self.name()?;
        Ok((Expr::Column(Some(name), column), 1))
    }

    fn select_in_parentheses(&mut self) -> Result<crate::ast::Select, Error> {
        self.expect_sign("(")?;
        let select = self.select()?;
        self.expect_sign(")")?;
        Ok(select)
    }

    fn parenthesized(&mut self) -> Result<Deep, Error> {
        self.expect_sign("(")?;
        if self.is_select() {
            let select = self.select()?;
            self.expect_sign(")")?;
            return Ok((Expr::Select(Box::new(select)), 1));
        }
        let (first, mut depth) = self.or()?;
        if !self.is_sign(",") {
            self.expect_sign(")")?;
            return Ok((first, depth));
        }
        let mut all = vec![first];
        while self.takes_sign(",") {
            let (expr, other) = self.or()?;
            depth = depth.max(other);
            all.push(expr);
            check_columns(all.len())?;
        }
        self.expect_sign(")")?;
        Ok((Expr::Row(all), above(depth)?))
    }

    fn case(&mut self) -> Result<Deep, Error> {
        let mut depth = 1;
        let mut inner = |parser: &mut Self| {
            let (expr, found) = parser.or()?;
            depth = depth.max(found);
            Ok::<Expr, Error>(expr)
        };
        let operand = match self.is_word("WHEN") {
            true => None,
            false => Some(boxed(inner(self)?)),
        };
        let mut branches = Vec::new();
        while self.takes("WHEN") {
            let condition = inner(self)?;
            self.expect("THEN")?;
            branches.push((condition, inner(self)?));
        }
        let otherwise = match self.takes("ELSE") {
            true => Some(boxed(inner(self)?)),
            false => None,
        };
        if branches.is_empty() {
            return Err(self.unexpected());
        }
        self.expect("END")?;
        Ok((Expr::Case(operand, branches, otherwise), above(depth)?))
    }

    fn cast(&mut self) -> Result<Deep, Error> {
        self.step();
        self.expect_sign("(")?;
        let (expr, depth) = self.or()?;
        self.expect("AS")?;
        let kind = self.kind()?;
        self.expect_sign(")")?;
        Ok((Expr::Cast(boxed(expr), kind), above(depth)?))
    }

    /// A type.
    pub(super) fn kind(&mut self) -> Result<FieldType, Error> {
        let token = self.token();
        let word = text_of(self.bytes_of(token)).to_ascii_uppercase();
        let kind = (token.kind == Kind::Word).then(|| kind_named(&word)).flatten();
        let Some(kind) = kind else {
            // No name may stand here, so that no word is one that is reserved.
            return Err(match token.kind {
                Kind::Word => error::near(self.text, token.start, token.end),
                _ => self.unexpected(),
            });
        };
        self.step();
        if word == "VARCHAR" {
            self.expect_sign("(")?;
            self.integer(false)?;
            self.expect_sign(")")?;
        }
        Ok(kind)
    }

    /// `TRIM([[BOTH | LEADING | TRAILING] [chars] FROM] text)`: the text, which side, the characters.
    fn trim(&mut self) -> Result<Deep, Error> {
        self.step();
        self.expect_sign("(")?;
        let sides = ["BOTH", "LEADING", "TRAILING"];
        let side = sides.iter().position(|side| self.takes(side));
        let mut chars = None;
        if !self.is_word("FROM") {
            chars = Some(self.or()?.0);
        }
        let is_from = self.takes("FROM");
        let text = match (is_from, chars.take()) {
            (true, given) => {
                chars = given;
                self.or()?.0
            }
            (false, Some(text)) if side.is_none() => text,
            (false, _) => return Err(self.unexpected()),
        };
        self.expect_sign(")")?;
        let mut arguments = vec![text];
        if is_from {
            arguments.push(Expr::Literal(Value::Int(side.unwrap_or(0) as i128)));
            arguments.extend(chars);
        }
        let name = "TRIM".to_owned();
        Ok((Expr::Call(Call { name, arguments, is_distinct: false, is_star: false }), 2))
    }

    fn call(&mut self) -> Result<Deep, Error> {
        let token = self.token();
        let name = match self.is_name() {
            true => self.name()?,
            false => {
                self.step();
                text_of(self.bytes_of(token)).to_ascii_uppercase()
            }
        };
        self.expect_sign("(")?;
        let mut call = Call { name, arguments: vec![], is_distinct: false, is_star: false };
        let mut depth = 1;
        if self.takes_sign("*") {
            call.is_star = true;
        } else if !self.is_sign(")") {
            call.is_distinct = self.takes("DISTINCT");
            if !call.is_distinct {
                self.takes("ALL");
            }
            while !(call.is_distinct && self.is_sign(")")) {
                let (argument, found) = self.or()?;
                depth = depth.max(found);
                call.arguments.push(argument);
                check_columns(call.arguments.len())?;
                if !self.takes_sign(",") {
                    break;
                }
            }
        }
        self.expect_sign(")")?;
        Ok((Expr::Call(call), above(depth)?))
    }
}
