// Names of keys as a tree, cut at a delimiter.
import { identity, text } from "./api.js";

const leafOrder = new Intl.Collator("en", { numeric: true });

/** A tree that grows while keys come in. */
export class Tree {
  constructor(delimiter) {
    this.delimiter = delimiter;
    this.root = branch("", "");
    this.known = new Set();
  }

  /** The number of keys. */
  get size() {
    return this.known.size;
  }

  add(key) {
    const id = identity(key);
    // SCAN may return a key twice.
    if (this.known.has(id)) return;
    this.known.add(id);
    const name = text(key);
    const parts = this.delimiter ? name.split(this.delimiter) : [name];
    let node = this.root;
    node.count += 1;
    for (const part of parts.slice(0, -1)) {
      const path = node.path + part + this.delimiter;
      if (!node.branches.has(part)) node.branches.set(part, branch(part, path));
      node = node.branches.get(part);
      node.count += 1;
    }
    node.leaves.push({ id, key, name: parts.at(-1) || name, full: name });
    node.order = null;
  }

  /** The paths of all branches. */
  paths() {
    const under = (node) => [...node.branches.values()].flatMap((child) => [child.path, ...under(child)]);
    return under(this.root);
  }

  /** The rows to show, from the top, given the paths that are open. */
  rows(open) {
    const rows = [];
    const walk = (node, depth) => {
      const branches = [...node.branches.values()].sort((one, other) => leafOrder.compare(one.name, other.name));
      for (const child of branches) {
        const isOpen = open.has(child.path);
        rows.push({ id: `p:${child.path}`, depth, branch: child, isOpen });
        if (isOpen) walk(child, depth + 1);
      }
      node.order ??= [...node.leaves].sort((one, other) => leafOrder.compare(one.name, other.name));
      for (const leaf of node.order) rows.push({ id: leaf.id, depth, leaf });
    };
    walk(this.root, 0);
    return rows;
  }
}

const branch = (name, path) => ({ name, path, count: 0, branches: new Map(), leaves: [], order: null });
