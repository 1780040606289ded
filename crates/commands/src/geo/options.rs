//! What is searched for: the arguments of `GEOSEARCH` and its relatives.

use super::kernel::{Area, Point, Shape};
use crate::shared::float::parse_double;
use ladon_kernel::command::args::{self, is};
use ladon_kernel::command::error::{CommandError, shown_up_to};

/// The forms of the command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// `GEORADIUS key longitude latitude radius unit`
    Radius { stores: bool },
    /// `GEORADIUSBYMEMBER key member radius unit`
    RadiusByMember { stores: bool },
    /// `GEOSEARCH key`
    Search,
    /// `GEOSEARCHSTORE destination source`
    SearchStore,
}

impl Form {
    /// Position of the key that is searched.
    pub(super) fn source_at(self) -> usize {
        if self == Form::SearchStore { 2 } else { 1 }
    }

    /// Position of the key where the result is stored, if there is one.
    pub(super) fn target_at(self, args: &[&[u8]]) -> Option<usize> {
        match self {
            Form::SearchStore => Some(1),
            Form::Radius { stores: true } | Form::RadiusByMember { stores: true } => {
                target_position(args)
            }
            _ => None,
        }
    }
}

/// Nearest or farthest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    Ascending,
    Descending,
}

/// What of each member is part of the reply.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Shown {
    pub(super) distance: bool,
    pub(super) hash: bool,
    pub(super) coordinates: bool,
}

/// What a command asks for.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Query {
    /// `None` if the key does not exist and only a member says where.
    pub(super) area: Option<Area>,
    pub(super) shown: Shown,
    pub(super) order: Option<Order>,
    /// Members at most; 0: all.
    pub(super) count: usize,
    /// The first that are found will do.
    pub(super) any: bool,
    /// Distances become the scores.
    pub(super) stores_distances: bool,
}

impl Query {
    /// Reads the arguments; `find` finds the point of a member, or is `None` if there is no key.
    pub(super) fn parse(
        form: Form,
        args: &[&[u8]],
        find: Option<impl Fn(&[u8]) -> Option<Point>>,
    ) -> Result<Query, CommandError> {
        let find = |member: &[u8]| {
            let Some(find) = &find else { return Ok(None) };
            let undecodable = CommandError::text("ERR could not decode requested zset member");
            find(member).map(Some).ok_or(undecodable)
        };
        let mut parser = Parser::default();
        let options = match form {
            Form::Radius { .. } => {
                parser.center = Some(point(&args[2..4])?);
                parser.circle(&args[4..6])?;
                &args[6..]
            }
            Form::RadiusByMember { .. } => {
                parser.center = find(args[2])?;
                // As in Redis, they are not looked at if there is no key.
                if parser.center.is_some() {
                    parser.circle(&args[3..5])?;
                }
                &args[5..]
            }
            Form::Search => &args[2..],
            Form::SearchStore => &args[3..],
        };
        parser.options(form, options, &find)?;
        parser.finish(form, args[0])
    }
}

/// Finds the point of a member; none if there is no key.
type FindMember<'a> = dyn Fn(&[u8]) -> Result<Option<Point>, CommandError> + 'a;

#[derive(Default)]
struct Parser {
    shown: Shown,
    order: Option<Order>,
    count: usize,
    any: bool,
    stores: bool,
    stores_distances: bool,
    from_member: bool,
    from_point: bool,
    center: Option<Point>,
    shape: Option<Shape>,
    unit: f64,
    polygon: Option<Area>,
}

impl Parser {
    fn options(
        &mut self,
        form: Form,
        mut words: &[&[u8]],
        find: &FindMember<'_>,
    ) -> Result<(), CommandError> {
        let searches = matches!(form, Form::Search | Form::SearchStore);
        let may_store =
            matches!(form, Form::Radius { stores: true } | Form::RadiusByMember { stores: true });
        while let [word, rest @ ..] = words {
            words = rest;
            match rest {
                _ if is(word, "withdist") => self.shown.distance = true,
                _ if is(word, "withhash") => self.shown.hash = true,
                _ if is(word, "withcoord") => self.shown.coordinates = true,
                _ if is(word, "any") => self.any = true,
                _ if is(word, "asc") => self.order = Some(Order::Ascending),
                _ if is(word, "desc") => self.order = Some(Order::Descending),
                [count, after @ ..] if is(word, "count") => {
                    let count = args::integer(count)?;
                    if count <= 0 {
                        return Err(CommandError::text("ERR COUNT must be > 0"));
                    }
                    self.count = usize::try_from(count).unwrap_or(usize::MAX);
                    words = after;
                }
                [_, after @ ..] if may_store && is(word, "store") => {
                    (self.stores, self.stores_distances) = (true, false);
                    words = after;
                }
                [_, after @ ..] if may_store && is(word, "storedist") => {
                    (self.stores, self.stores_distances) = (true, true);
                    words = after;
                }
                _ if form == Form::SearchStore && is(word, "storedist") => {
                    self.stores_distances = true;
                }
                _ if searches => words = self.search_option(word, rest, find)?,
                _ => return Err(CommandError::Syntax),
            }
        }
        Ok(())
    }

    /// An option that says where; returns the words that follow it.
    fn search_option<'a, 'b>(
        &mut self,
        word: &[u8],
        rest: &'a [&'b [u8]],
        find: &FindMember<'_>,
    ) -> Result<&'a [&'b [u8]], CommandError> {
        let (is_circle, is_box) = match &self.shape {
            Some(Shape::Circle { .. }) => (true, false),
            Some(Shape::Box { .. }) => (false, true),
            _ => (false, false),
        };
        let is_polygon = self.polygon.is_some();
        match rest {
            [member, after @ ..] if is(word, "frommember") && !self.from_point && !is_polygon => {
                self.center = find(member)?.or(self.center);
                self.from_member = true;
                Ok(after)
            }
            [_, _, after @ ..] if is(word, "fromlonlat") && !self.from_member && !is_polygon => {
                self.center = Some(point(&rest[..2])?);
                self.from_point = true;
                Ok(after)
            }
            [_, _, after @ ..] if is(word, "byradius") && !is_box && !is_polygon => {
                self.circle(&rest[..2])?;
                Ok(after)
            }
            [width, height, unit, after @ ..] if is(word, "bybox") && !is_circle && !is_polygon => {
                self.rectangle(width, height, unit)?;
                Ok(after)
            }
            [count, _, ..]
                if is(word, "bypolygon") && !is_circle && !is_box && !self.from_member =>
            {
                self.vertices(count, &rest[1..])
            }
            _ => Err(CommandError::Syntax),
        }
    }

    fn circle(&mut self, words: &[&[u8]]) -> Result<(), CommandError> {
        let radius = number(words[0], "ERR need numeric radius")?;
        if radius < 0.0 {
            return Err(CommandError::text("ERR radius cannot be negative"));
        }
        self.unit = unit(words[1])?;
        self.shape = Some(Shape::Circle { radius });
        Ok(())
    }

    fn rectangle(&mut self, width: &[u8], height: &[u8], unit: &[u8]) -> Result<(), CommandError> {
        let width = number(width, "ERR need numeric width")?;
        let height = number(height, "ERR need numeric height")?;
        if width < 0.0 || height < 0.0 {
            return Err(CommandError::text("ERR height or width cannot be negative"));
        }
        self.unit = self::unit(unit)?;
        self.shape = Some(Shape::Box { width, height });
        Ok(())
    }

    fn vertices<'a, 'b>(
        &mut self,
        count: &[u8],
        words: &'a [&'b [u8]],
    ) -> Result<&'a [&'b [u8]], CommandError> {
        const VERTICES_MIN: usize = 3;
        const FEW: CommandError =
            CommandError::text("ERR GEOSEARCH BYPOLYGON must have at least 3 vertices");
        let count = args::integer(count).ok().and_then(|count| i32::try_from(count).ok());
        let count = count.ok_or(CommandError::text("ERR invalid number of vertices"))?;
        let count = usize::try_from(count).map_err(|_| FEW)?;
        if count < VERTICES_MIN || words.len() / 2 < count {
            return Err(FEW);
        }
        let (vertices, after) = words.split_at(2 * count);
        let vertices = vertices.chunks_exact(2).map(point).collect::<Result<_, _>>()?;
        self.polygon = Some(Area::of_polygon(vertices));
        Ok(after)
    }

    fn finish(self, form: Form, command: &[u8]) -> Result<Query, CommandError> {
        let stores = self.stores || form == Form::SearchStore;
        if stores && self.shown != Shown::default() {
            let what = match form {
                Form::SearchStore => "GEOSEARCHSTORE",
                _ => "STORE option in GEORADIUS",
            };
            return Err(CommandError::err(format_args!(
                "{what} is not compatible with WITHDIST, WITHHASH and WITHCOORD options"
            )));
        }
        let is_polygon = self.polygon.is_some();
        if matches!(form, Form::Search | Form::SearchStore) {
            let command = shown_up_to(command, usize::MAX);
            if !self.from_member && !self.from_point && !is_polygon {
                return Err(CommandError::err(format_args!(
                    "exactly one of FROMMEMBER or FROMLONLAT can be specified for {command}"
                )));
            }
            if self.shape.is_none() && !is_polygon {
                return Err(CommandError::err(format_args!(
                    "exactly one of BYRADIUS and BYBOX can be specified for {command}"
                )));
            }
        }
        if self.any && self.count == 0 {
            return Err(CommandError::text("ERR the ANY argument requires COUNT argument"));
        }
        // The nearest are meant, unless any will do.
        let order = match self.order {
            None if self.count != 0 && !self.any => Some(Order::Ascending),
            order => order,
        };
        let area = self
            .polygon
            .or_else(|| Some(Area { center: self.center?, shape: self.shape?, unit: self.unit }));
        Ok(Query {
            area,
            shown: self.shown,
            order,
            count: self.count,
            any: self.any,
            stores_distances: self.stores_distances,
        })
    }
}

/// Position of the key where `GEORADIUS` stores: the last one that an option names, whatever else
/// is wrong.
pub(super) fn target_position(args: &[&[u8]]) -> Option<usize> {
    /// No option is before it in either form.
    const FIRST: usize = 5;
    let (mut at, mut found) = (FIRST, None);
    while at + 1 < args.len() {
        if is(args[at], "store") || is(args[at], "storedist") {
            at += 1;
            found = Some(at);
        }
        at += 1;
    }
    found
}

/// A point that can be added or searched at: longitude and latitude.
pub(super) fn point(words: &[&[u8]]) -> Result<Point, CommandError> {
    let number = |text| parse_double(text).ok_or(CommandError::NotFloat);
    let point = Point { longitude: number(words[0])?, latitude: number(words[1])? };
    if !point.is_valid() {
        let Point { longitude, latitude } = point;
        return Err(CommandError::err(format_args!(
            "invalid longitude,latitude pair {longitude:.6},{latitude:.6}"
        )));
    }
    Ok(point)
}

fn number(text: &[u8], error: &'static str) -> Result<f64, CommandError> {
    parse_double(text).ok_or(CommandError::text(error))
}

/// Meters of a unit.
pub(super) fn unit(word: &[u8]) -> Result<f64, CommandError> {
    Ok(match word {
        _ if is(word, "m") => 1.0,
        _ if is(word, "km") => 1000.0,
        _ if is(word, "ft") => 0.3048,
        _ if is(word, "mi") => 1609.34,
        _ => {
            return Err(CommandError::text(
                "ERR unsupported unit provided. please use M, KM, FT, MI",
            ));
        }
    })
}
