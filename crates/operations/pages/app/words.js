// A line as a command's words, with quotes as redis-cli has them.

const ESCAPES = { n: "\n", r: "\r", t: "\t", b: "\b", a: "\x07" };

/** The words of a line; throws if a quote does not end. */
export function words(line) {
  const found = [];
  let at = 0;
  const space = (letter) => letter === " " || letter === "\t";
  while (at < line.length) {
    if (space(line[at])) {
      at += 1;
      continue;
    }
    let word = "";
    while (at < line.length && !space(line[at])) {
      if (line[at] === '"' || line[at] === "'") {
        const [quoted, end] = quotedPart(line, at);
        word += quoted;
        at = end;
      } else {
        word += line[at];
        at += 1;
      }
    }
    found.push(argument(word));
  }
  return found;
}

function quotedPart(line, start) {
  const quote = line[start];
  let word = "";
  for (let at = start + 1; at < line.length; at += 1) {
    if (line[at] === quote) return [word, at + 1];
    if (line[at] !== "\\" || at + 1 === line.length) {
      word += line[at];
      continue;
    }
    at += 1;
    const hex = quote === '"' && line[at] === "x" && line.slice(at + 1).match(/^[0-9a-fA-F]{2}/)?.[0];
    if (hex) {
      // Bytes are kept apart from letters until the word is whole.
      word += String.fromCharCode(0xdc00 + parseInt(hex, 16));
      at += 2;
    } else if (quote === '"') {
      word += ESCAPES[line[at]] ?? line[at];
    } else {
      word += line[at] === "'" ? "'" : `\\${line[at]}`;
    }
  }
  throw new Error(`A quote does not end: ${line.slice(start)}`);
}

/** A word with bytes in it is sent as bytes. */
function argument(word) {
  if (!/[\udc00-\udcff]/.test(word.replace(/[\ud800-\udbff][\udc00-\udfff]/g, ""))) return word;
  const encoder = new TextEncoder();
  const bytes = [...word].flatMap((letter) => {
    const code = letter.charCodeAt(0);
    return letter.length === 1 && code >= 0xdc00 && code <= 0xdcff ? [code - 0xdc00] : [...encoder.encode(letter)];
  });
  return { bytes: btoa(String.fromCharCode(...bytes)) };
}
