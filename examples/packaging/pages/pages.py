#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR 0BSD
"""Makes the pages of volt.h from its own text: HTML and man pages, by pandoc.

    python3 examples/packaging/pages/pages.py DIRECTORY      makes DIRECTORY/html and DIRECTORY/man

The manual, and the contract of each function, are the comments of volt.h. This script turns them
into Markdown, adds links and, for each function, lines of an example that calls it; pandoc renders
all of it. The guides are the README.md files. html/search-index.js is the index of the search,
which runs in the browser. `make doc` runs this script, `make doc-check` checks what it makes.
"""
import collections
import html
import json
import os
import posixpath
import re
import shutil
import subprocess
import sys

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", "..", ".."))
HERE = os.path.dirname(os.path.abspath(__file__))
# The pages that are made of other files than volt.h: name, title.
GUIDES = {
    "README.md": ("index", "volt.h"),
    "examples/README.md": ("guide", "Guide"),
    "bench/README.md": ("benchmarks", "Figures and speed"),
    "tests/README.md": ("tests", "Tests and proofs"),
    "examples/packaging/README.md": ("packages", "Packages"),
    ".github/CHANGELOG.md": ("changes", "Changes"),
    ".github/SECURITY.md": ("security", "Security"),
}
# The sections of volt.h, and the titles of their pages; >>api has a page for each of its parts.
SECTIONS = {"manual": "Manual", "config": "Configuration macros", "types": "Types",
            "await": "Awaits", "api": None, "cxx": "C++"}
FIELDS = {"where": "Where", "returns": "Returns", "wakes": "Wakes", "memory": "Memory",
          "Order": "Order"}
# Where examples are looked for, the best ones first.
EXAMPLES = ("examples/README.md", "README.md", "volt.h", "examples/*.c", "examples/*.h",
            "examples/programs/*.c", "examples/programs/*.h", "examples/adapters/*.h",
            "tests/api/*.c", "tests/stress/*.c", "tests/regress/*.c", "tests/exhaustive/*.c",
            "tests/unit/*.c")

Contract = collections.namedtuple("Contract", "names text fields code awaited left_out")
Page = collections.namedtuple("Page", "name title parts")
Part = collections.namedtuple("Part", "title text contracts")


def read(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as f:
        return f.read()


def slug(title):
    """The anchor that GitHub gives to a heading."""
    return re.sub(r"[^\w\- ]", "", title.strip().lower()).replace(" ", "-")


def capital(title):
    return title[0].upper() + title[1:]


# ---- volt.h: sections, parts, contracts

def sections():
    """The lines of each public section."""
    found, name = {}, None
    lines = read("volt.h").split("\n")
    for number, line in enumerate(lines):
        banner = re.match(r"// >>(\w+)  ", line)
        if banner and lines[number - 1].startswith("//===="):
            name = banner[1] if banner[1] in SECTIONS else None
            if name:
                found[name] = []
        elif line.startswith("#endif // VOLT_H"):
            name = None
        elif name and not line.startswith("//===="):
            found[name].append(line)
    missing = set(SECTIONS) - set(found)
    if missing:
        sys.exit(f"pages.py: volt.h has no section {missing}")
    return found


def expanded(lines):
    """Lines in which the tables of X_(name, text) are written out where they are used."""
    text, found, template = "\n".join(lines), [], {}
    for line in lines:
        define = re.match(r"#define (VOLT__\w+)\(name_, text_\) (.*)", line)
        use = re.match(r"    (VOLT__\w+)\((VOLT__\w+)\)$", line)
        if define:
            template[define[1]] = define[2]
        elif use and use[2] in template:
            table = re.search(rf"#define {use[1]}\(X_\).*?[^\\]\n(?!    X_)", text, re.S)[0]
            for name, note in re.findall(r'X_\((\w+), "(.*?)"\)', table):
                declared = re.sub(r"##name_|\bname_", name, template[use[2]])
                found.append(f"    {declared} // {note}")
        elif not re.match(r"#undef VOLT__", line):
            found.append(re.sub(r"^// X_\(\w+, \w+\): (.)",
                                lambda m: "// " + m[1].upper(), line))
    return found


def conditions_of(lines):
    """For each line the VOLT_NO_ macros that leave it out, or None if the line is such a condition
    or its end."""
    stack, found = [], []
    for line in lines:
        begins = re.match(r"# *ifndef (VOLT_NO_\w+)$", line)
        if re.match(r"# *if", line):
            stack.append(begins[1] if begins else "")
            found.append(None if begins else tuple(filter(None, stack)))
        elif re.match(r"# *endif", line) and stack:
            found.append(None if stack.pop() else tuple(filter(None, stack)))
        else:
            found.append(tuple(filter(None, stack)))
    return found


def without_marks(comment):
    return [line[3:] for line in comment]


def public_names(code):
    """The public functions, macros and types that these lines declare."""
    names = re.findall(r"^(?:VOLT_API|static inline)\b[^;{=]*?\b(volt_[a-z]\w*)\(", code, re.M)
    names += re.findall(r"^# *define ((?:volt|VOLT)_[a-zA-Z]\w*)", code, re.M)
    names += re.findall(r"^} (volt_[a-z]\w*);", code, re.M)
    names += re.findall(r"^typedef [^{(]*?\b(volt_[a-z]\w*);", code, re.M)
    names += re.findall(r"^typedef [^{;]*?\(\*?(volt_[a-z]\w*)\)\(", code, re.M)
    names += re.findall(r"^typedef [^{;]*? (volt_[a-z]\w*)\(", code, re.M)
    for body in re.findall(r"^(?:typedef )?enum[^{]*{(.*?)}", code, re.M | re.S):
        body = re.sub(r"//.*", "", body)
        names += re.findall(r"\b(VOLT_[A-Z]\w*)", re.sub(r"=[^,]*", "", body))
    seen = []
    for name in names:
        if "__" not in name and name not in seen:
            seen.append(name)
    return seen


def statements(code):
    """Splits lines of code into declarations, each a list of lines."""
    found, current, depth = [], [], 0
    for line in code:
        current.append(line)
        bare = re.sub(r"//.*", "", line)
        depth += bare.count("{") - bare.count("}")
        is_directive = current[0].startswith("#")
        if line.endswith("\\"):
            continue
        if is_directive or (depth == 0 and re.search(r"[;}]\s*$", bare)):
            found.append(current)
            current = []
    return found + ([current] if current else [])


def without_private(statement):
    """A struct without its private members, whose names end in _, and the comments above them."""
    kept, above, is_cut = [], [], False
    for line in statement[1:-1]:
        bare = re.sub(r"//.*|\[[^]]*\]", "", line).strip()
        names = re.findall(r"(\w+)\s*(?=[,;)])", bare)
        if not bare or bare.startswith("#"):
            above += [] if bare else [line]
        elif names and all(n.endswith("_") for n in names):
            above, is_cut = [], True
        else:
            kept += above + [line]
            above = []
    cut = ["    // and private members" if kept else "    // private members"] if is_cut else []
    return [statement[0], *kept, *cut, statement[-1]]


def shown(statement):
    """A declaration as the pages show it: without private members, bodies and macros of volt.h."""
    if re.match(r"(typedef )?struct \w.*{$", statement[0]):
        statement = without_private(statement)
    text = "\n".join(statement)
    if re.match(r"# *define \w+\(", text):
        return re.match(r"# *define (\w+\([^)]*\))", text)[1].replace("_,", ",").replace("_)", ")")
    if text.startswith("#"):
        text = re.sub(r"^# +", "#", re.sub(r" {2,}|(?<=_(?:INIT|FIFO)) { .*}", " ", text))
        return re.sub(r" *\\\n *", " ", text)
    if text.startswith("static inline"):
        text = re.sub(r"\s*{.*", ";", text, flags=re.S).replace("static inline ", "")
    text = re.sub(r"VOLT__NODISCARD |VOLT_API (VOLT__MUST )?", "", text)
    text = text.replace("VOLT_POLL ", "volt_poll ")
    text = re.sub(r"\s*__attribute__\(\(.*?\)\)", "", text)
    return re.sub(r"\n {10,}", " ", text) if "(" in text and "{" not in text else text


def contract_of(comment, code, left_out):
    """The contract of the declarations below a comment, or None if all of them are private."""
    kept, names = [], []
    for statement in statements(code):  # the branches of an #if declare a name twice
        new = [n for n in public_names("\n".join(statement)) if n not in names]
        names += new
        kept += [statement] if new else []
    if not names:
        return None
    text, fields, current = [], {}, None
    if re.match(r"typedef struct volt__|enum { VOLT__", code[0]):
        comment = []  # about a private type
    for one in without_marks(comment):
        field = re.match(r"  (where|returns|wakes|memory|Order) *: (.*)", one)
        if field:
            current = field[1]
            fields[current] = field[2]
        elif current and one.startswith("    "):
            fields[current] += " " + one.strip()
        else:
            current = None
            text.append(one)
    awaited = [n for s in kept if s[0].startswith("VOLT_API VOLT_POLL")
               for n in public_names("\n".join(s))]
    return Contract(names, text, fields, [shown(s) for s in kept], awaited, left_out)


def parts_of(lines, has_contracts=True):
    """The parts of a section: a title, lines of text, contracts. Without contracts all is text."""
    parts, comment, code, left_out = [Part("", [], [])], [], [], ()
    lines = expanded(lines)

    def flush():
        nonlocal comment, code
        if code and not has_contracts:
            parts[-1].text.extend(without_marks(comment) + [""])
        elif code:
            contract = contract_of(comment, code, left_out)
            if contract:
                parts[-1].contracts.append(contract)
            elif not parts[-1].contracts and not parts[-1].text:
                parts[-1].text.extend(without_marks(comment) + [""])  # below a heading
        elif comment:
            if parts[-1].contracts:  # of the contracts that follow it
                parts[-1].contracts.append(without_marks(comment))
            else:
                parts[-1].text.extend(without_marks(comment) + [""])
        comment, code = [], []

    for line, out in zip(lines, conditions_of(lines)):
        heading = re.match(r"// ---- (.*)", line)
        if heading:
            flush()
            parts.append(Part(heading[1], [], []))
        elif out is None:
            flush()
        elif line.startswith("//") and not (code and code[-1].endswith("\\")):
            if code:
                flush()
            comment.append(line)
        elif line.strip():
            if not code:
                left_out = out
            code.append(line)
        else:
            flush()
    flush()
    return [p for p in parts if p.title or p.text or p.contracts]


# ---- comments as Markdown

class Text:
    """Turns the text of comments into Markdown, with links to what it names."""

    def __init__(self):
        self.link_of = {}     # name: page#anchor
        self.headings = {}    # title of a part of the manual: page#anchor
        self.sections = {}    # name of a section: page
        self.members = {}     # .member of volt_config: page#anchor

    TOKEN = re.compile(r"`[^`]+`|(?<![\w-])-E[A-Z][A-Z0-9]+\b|\b(?:volt|VOLT)_[A-Za-z]\w*\*?"
                       r"|>>[a-z]+\b|(?<![\w.])\.[a-z]\w+\b|(?<![\w*])\*[a-z]\w*\b|\"[a-z ]+\"")

    def code(self, text, target=None):
        code = "`" + text + "`"
        return f"[{code}]({target})" if target else code

    def token(self, text, own):
        if text.startswith("`"):
            inner = text.strip("`")
            target = self.link_of.get(re.match(r"\w*", inner)[0])
            return self.code(inner, target if target != own else None)
        if text.startswith("-E"):
            return self.code(text, self.link_of.get(text))
        if text.startswith(">>"):
            page = self.sections.get(text[2:])
            return f"[{page.capitalize()}]({page}.html)" if page else self.plain(text)
        if text.startswith('"'):
            target = self.headings.get(text.strip('"'))
            return f"[{self.plain(text)}]({target})" if target else self.plain(text)
        if text.startswith("."):
            return self.code(text, self.members.get(text))
        target = self.link_of.get(text.rstrip("*"))
        return self.code(text, target if target != own else None)

    @staticmethod
    def plain(text):
        return re.sub(r"([\\`*_{}\[\]()#+\-.!|<>~^$@'\"=:&/])", r"\\\1", text)

    def inline(self, text, own=None):
        found, at = [], 0
        for match in self.TOKEN.finditer(text):
            found += [self.plain(text[at:match.start()]), self.token(match[0], own)]
            at = match.end()
        return "".join(found) + self.plain(text[at:])

    def table(self, lines):
        """Rows of two columns become a list of definitions, others stay as they are set."""
        column = collections.Counter(
            m.end() for m in (re.match(r"  \S.*? {2,}(?=\S)", line) for line in lines) if m)
        column += collections.Counter(
            len(line) - len(line.lstrip()) for line in lines if line.startswith("    "))
        place = column.most_common(1)[0][0] if column else 0
        rows = []
        for line in lines:
            split = re.match(r"  (\S.*?) {2,}(\S.*)$", line)
            if line.startswith("    ") and rows:
                rows[-1][1] += " " + line.strip()
            elif split:
                rows.append([split[1], split[2]])
            elif line[place - 1:place] == " ":
                rows.append([line[:place].strip(), line[place:]])
            else:
                rows.append([line.strip(), ""])
        if any(re.search(r"\S {2,}\S", value) for _, value in rows):
            return ["", "```"] + [line[2:] for line in lines] + ["```", ""]
        found = [""]
        for key, value in rows:
            error = re.match(r"-E[A-Z0-9]+", key)
            label = self.inline(key)
            if error and self.link_of.get(error[0], "").endswith("#" + error[0][1:]):
                label = "".join(f"[`{e}`]{{#{e[1:]}}} " for e in re.findall(r"-E[A-Z0-9]+", key))
            found += [label.strip(), ":   " + self.inline(value or " "), ""]
        return found

    def blocks(self, lines, own=None):
        """Paragraphs, lists, tables and code."""
        found, at = [], 0
        while at < len(lines):
            line = lines[at]
            item = re.match(r" {1,2}(\d+\.|-) +", line)
            if not line.strip():
                found.append("")
                at += 1
            elif item:
                width = item.end()
                text, at = [line[width:]], at + 1
                inner = []
                while at < len(lines) and lines[at].startswith(" " * width):
                    (inner if inner or lines[at].startswith(" " * (width + 2))
                     else text).append(lines[at][width:])
                    at += 1
                found += ["", item[0].strip() + " " + self.inline(" ".join(text), own), ""]
                if inner:
                    code = [i for i in inner if i.startswith("  ")]
                    rest = " ".join(i for i in inner if not i.startswith("  "))
                    found += ["    ```"] + ["    " + c.strip() for c in code] + ["    ```", ""]
                    found += ["    " + self.inline(rest, own), ""] if rest else []
            elif line.startswith("    "):
                begin = at
                while at < len(lines) and (lines[at].startswith("    ") or
                                           (not lines[at].strip() and at + 1 < len(lines) and
                                            lines[at + 1].startswith("    "))):
                    at += 1
                code = [c[4:] for c in lines[begin:at]]
                found += ["", "```c"] + [c for c in code if c != "// fragment"] + ["```", ""]
            elif line.startswith("  "):
                begin = at
                while at < len(lines) and lines[at].startswith("  "):
                    at += 1
                found += self.table(lines[begin:at])
            else:
                begin = at
                while at < len(lines) and lines[at].strip() and not lines[at].startswith(" "):
                    at += 1
                found += [self.inline(" ".join(lines[begin:at]), own)]
        return found


# ---- examples

class Examples:
    """Lines that call a function, with the place where they stand."""

    def __init__(self):
        self.sources = []  # path, lines, heading of each line or None
        for pattern in EXAMPLES:
            for path in matching(pattern):
                text = read(path)
                if path == "volt.h":
                    text = "\n".join(line[7:] if line.startswith("//     ") else ""
                                     for line in text[:text.index(">>config  ")].split("\n"))
                self.sources.append((path, text.split("\n")))

    def find(self, name):
        call = re.compile(call_of(name))
        for path, lines in self.sources:
            inside, heading = not path.endswith(".md"), ""
            for number, line in enumerate(lines):
                if path.endswith(".md"):
                    if line.startswith("```"):
                        inside = line == "```c"
                        continue
                    if line.startswith("#") and not inside:
                        heading = line.strip("# ")
                if inside and call.search(re.sub(r"//.*", "", line)) and \
                        not re.match(r"\s*[#*]|[A-Z_]+\(", line):
                    return path, number, self.excerpt(lines, number), heading
        return None

    @staticmethod
    def excerpt(lines, number):
        begin, end = number, number + 1
        while begin > max(0, number - 3) and not re.search(r"[;{}]\s*(//.*)?$|^\s*$",
                                                           lines[begin - 1]):
            begin -= 1
        while end < min(len(lines), number + 4) and not re.search(r"[;{}]\s*(//.*)?$",
                                                                  lines[end - 1]):
            end += 1
        if end < len(lines) and lines[end].strip() not in ("", "}", "```"):
            end += 1
        part = [line for line in lines[begin:end] if not line.startswith("```")]
        margin = min(len(line) - len(line.lstrip()) for line in part if line.strip())
        return [line[margin:] for line in part]


def call_of(name):
    """A pattern of a call of the function, or of the macro of the same name."""
    return rf"(?<!\w)(?:{name}|{name.upper()})\("


def matching(pattern):
    folder, name = posixpath.split(pattern)
    names = sorted(os.listdir(os.path.join(ROOT, folder)))
    fits = re.compile(re.escape(name).replace(r"\*", "[^/]*") + "$")
    return [posixpath.join(folder, n) for n in names if fits.match(n)]


# ---- the site

class Site:
    def __init__(self, out):
        self.html, self.man = os.path.join(out, "html"), os.path.join(out, "man")
        self.text, self.examples = Text(), Examples()
        self.index, self.sources = [], {}
        self.pages = self.read_header()
        self.version = re.search(r"^// volt\.h ([0-9.]+) - ", read("volt.h"), re.M)[1]
        self.without_example = set()

    def read_header(self):
        pages = []
        for name, lines in sections().items():
            parts = parts_of(lines, name != "config")
            if name != "api":
                self.text.sections[name] = name
                pages.append(Page(name, SECTIONS[name], parts))
                continue
            self.text.sections[name] = "functions"
            pages.append(Page("contracts", "Reading a contract", parts[:1]))
            for part in parts[1:]:
                pages.append(Page("api-" + slug(part.title), capital(part.title), [part]))
        for page in pages:
            for part in page.parts:
                for contract in part.contracts:
                    if isinstance(contract, Contract):
                        for n in contract.names:
                            self.text.link_of.setdefault(n, f"{page.name}.html#{n}")
                        if "volt_config" in contract.names:
                            for member in re.findall(r"\b([a-z]\w*)[,;]", contract.code[-1]):
                                self.text.members["." + member] = f"{page.name}.html#volt_config"
        for macro in set(re.findall(r"^//   (VOLT_[A-Z_]+) ", read("volt.h"), re.M)):
            self.text.link_of.setdefault(macro, "config.html")
        manual = next(p for p in pages if p.name == "manual")
        for part in manual.parts:
            self.text.headings[part.title.split(":")[0]] = "manual.html#" + slug(part.title)
            if part.title == "results":
                for error in re.findall(r"^  (-E.*?)  ", "\n".join(part.text), re.M):
                    for e in re.findall(r"-E[A-Z0-9]+", error):
                        self.text.link_of[e] = "manual.html#" + e[1:]
        return pages

    # ---- Markdown of a page of volt.h
    def contract(self, contract, previous, anchors):
        own = self.text.link_of.get(contract.names[0])
        new = [n for n in contract.names if n not in anchors]  # both branches of an #if declare it
        anchors.update(new)
        titles = contract.names[:1] + [n for n in contract.names[1:] if n.islower()]
        title = ", ".join(titles[:4]) + (" …" if len(titles) > 4 else "")
        found = [f"### {self.text.plain(title)} {{#{new[0]}}}" if new else "", "",
                 " ".join(f"[]{{#{n}}}" for n in new[1:]), "",
                 "```c", *contract.code, "```", ""]
        text = self.text.blocks(contract.text, own)
        if previous and text and text[0].startswith("The same"):
            text[0] = f"[The same](#{previous.names[0]})" + text[0][len("The same"):]
        found += text + [""]
        for key, value in contract.fields.items():
            found += [f"**{FIELDS[key]}**", ""]
            items = value.split(" | ") if key == "returns" else [value]
            if len(items) > 1:
                found += [line for item in items
                          for line in ("- " + self.text.inline(item, own), "")]
            else:
                found += [self.text.inline(value, own), ""]
        if contract.awaited:
            found += ["**Awaited**", "",
                      ("It" if len(contract.names) == 1 else "A form that gives a `volt_poll`") +
                      " is awaited, and also returns "
                      "[the results that all awaited calls have](contracts.html).", ""]
        if contract.left_out:
            found += ["Left out by " + ", ".join(f"`{n}`" for n in contract.left_out) +
                      ", see [configuration](config.html).", ""]
        return found

    def examples_of(self, contract):
        """Lines of examples, and their places, until each name that can be called has one."""
        found = []
        for name in sorted(self.calls(contract), key=contract.names.index):
            if any(re.search(call_of(name), line) for p in found for line in p[2]):
                continue
            place = self.examples.find(name)
            if place:
                found.append(place)
            else:
                self.without_example.add(name)
        return found

    def example_text(self, contract):
        found = []
        for path, number, lines, heading in self.examples_of(contract):
            if path in GUIDES:
                name, title = GUIDES[path]
                where = f"[{title}: {self.text.plain(heading)}]({name}.html#{slug(heading)})"
            elif path == "volt.h":
                where = "[the manual](manual.html)"
            else:
                where = f"[{self.text.plain(path)}]({self.source(path)}#L{number + 1})"
            found += ["" if found else "**Example**", "", "```c", *lines, "```", "",
                      "From " + where, ""]
        return found

    def markdown(self, page):
        found, anchors = [f"# {self.text.plain(page.title)}", ""], set()
        titles = [p.title for p in page.parts if p.title]
        if len(titles) > 3:
            found += ["::: contents", ""]
            found += [f"- [{self.text.plain(capital(t))}](#{slug(t)})" for t in titles]
            found += ["", ":::", ""]
        for part in page.parts:
            if part.title and len(page.parts) > 1:
                found += [f"## {self.text.plain(capital(part.title))} {{#{slug(part.title)}}}", ""]
                self.note(part.title, f"{page.name}.html#{slug(part.title)}", page.title,
                          " ".join(part.text)[:160])
            names = [n for c in part.contracts if isinstance(c, Contract) for n in c.names[:1]]
            if len(names) > 3 and len(page.parts) == 1:
                found += ["::: contents", ""]
                found += [f"- [`{n}`](#{n})" for n in names] + ["", ":::", ""]
            found += self.text.blocks(part.text) + [""]
            previous = None
            for contract in part.contracts:
                if isinstance(contract, Contract):
                    found += self.contract(contract, previous, anchors)
                    found += self.example_text(contract)
                    previous = contract
                    for n in contract.names:
                        self.note(n, f"{page.name}.html#{n}", page.title,
                                  " ".join(contract.text)[:160])
                else:
                    found += self.text.blocks(contract) + [""]
        return "\n".join(found)

    def note(self, name, target, place, text):
        self.index.append([name, target, place, re.sub(r"\s+", " ", text).strip()])

    # ---- pages
    def source(self, path):
        """The page of a file of the repository, relative to the pages."""
        self.sources.setdefault(path, None)
        return f"source/{path}.html"

    def target(self, link, folder):
        """A link of a guide, as one of the site."""
        if re.match(r"[a-z]+:|#", link):
            return link
        path, _, anchor = link.partition("#")
        path = posixpath.normpath(posixpath.join(folder, path))
        anchor = "#" + anchor if anchor else ""
        if path == "volt.h":
            return "manual.html" + anchor
        for guide, (name, _) in GUIDES.items():
            if path in (guide, posixpath.dirname(guide) or None):
                return f"{name}.html" + anchor
        if not os.path.exists(os.path.join(ROOT, path)):
            sys.exit(f"pages.py: a link to {path}, which does not exist")
        return self.source(path) + anchor

    def write(self, name, title, body, up=""):
        nav = [("Start", "index"), ("Manual", "manual"), ("Functions", "functions"),
               ("Guide", "guide"), ("Speed", "benchmarks"), ("Tests", "tests"),
               ("Packages", "packages"), ("Changes", "changes")]
        links = "\n".join(f'<a href="{up}{page}.html"' +
                          (' aria-current="page"' if page == name else "") + f">{label}</a>"
                          for label, page in nav)
        text = read("examples/packaging/pages/template.html")
        for key, value in (("title", html.escape(title)), ("up", up), ("nav", links),
                           ("version", self.version), ("body", body)):
            text = text.replace("{{" + key + "}}", value)
        path = os.path.join(self.html, name + ".html")
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)

    def write_header_pages(self):
        for page in self.pages:
            body = pandoc(self.markdown(page), "markdown-smart-implicit_figures", "html5")
            self.write(page.name, page.title, frames(body))

    def write_functions(self):
        """The page of all names, by subject, and of all parts."""
        found = ["# Functions", "",
                 "All that volt.h declares, by subject. [Reading a contract](contracts.html) "
                 "explains the form of their descriptions.", ""]
        for page in self.pages:
            names = sorted({n for p in page.parts for c in p.contracts if isinstance(c, Contract)
                            for n in c.names}, key=str.lower)
            if not names:
                continue
            found += [f"## [{self.text.plain(page.title)}]({page.name}.html)", "",
                      "::: contents", ""]
            found += [f"- [`{n}`]({self.text.link_of[n]})" for n in names] + ["", ":::", ""]
        self.write("functions", "Functions", pandoc("\n".join(found), "markdown-smart", "html5"))

    def write_guides(self):
        for path, (name, title) in GUIDES.items():
            folder = posixpath.dirname(path)
            body = pandoc(read(path), "gfm", "html5")
            body = re.sub(r'(<a\s+href=")([^"]+)"', lambda m: m[1] + html.escape(
                self.target(html.unescape(m[2]), folder)) + '"', body)
            body = re.sub(r'<p><img\s+src="([^"]+\.svg)"[^>]*></p>|<figure>.*?src="([^"]+\.svg)".*?'
                          r'</figure>', lambda m: self.figure(folder, m[1] or m[2]), body,
                          flags=re.S)
            for level, anchor, heading in re.findall(r'<h([23])\s+id="([^"]+)">(.*?)</h', body,
                                                     re.S):
                self.note(plain_text(heading), f"{name}.html#{anchor}", title, "")
            self.write(name, title, frames(body))

    def figure(self, folder, path):
        svg = read(posixpath.normpath(posixpath.join(folder, path)))
        return f'<figure class="wide" tabindex="0">{svg}</figure>'

    def write_sources(self):
        done = set()
        while set(self.sources) - done:
            for path in sorted(set(self.sources) - done):
                done.add(path)
                self.write_source(path)

    def write_source(self, path):
        full, name = os.path.join(ROOT, path), f"source/{path}"
        up = "../" * (path.count("/") + 1)
        if os.path.isdir(full):
            rows = "".join(f"<li>{html.escape(n)}</li>" for n in sorted(os.listdir(full)))
            body = f"<h1>{html.escape(path)}</h1><ul>{rows}</ul>"
        else:
            lines = read(path).rstrip("\n").split("\n")
            rows = "\n".join(f'<span id="L{n}">{html.escape(line)}</span>'
                             for n, line in enumerate(lines, 1))
            body = f'<h1>{html.escape(path)}</h1><pre tabindex="0"><code>{rows}</code></pre>'
        self.write(name, path, body, up)

    def write_index(self):
        text = json.dumps(self.index, ensure_ascii=False, separators=(",", ":"))
        with open(os.path.join(self.html, "search-index.js"), "w", encoding="utf-8") as f:
            f.write("// made by examples/packaging/pages/pages.py\nconst searchIndex = "
                    + text.replace("],[", "],\n[") + ";\n")

    # ---- man pages: all in one run of pandoc, cut at marks
    def write_man(self):
        contracts = [(page, c) for page in self.pages for p in page.parts for c in p.contracts
                     if isinstance(c, Contract) and self.calls(c)]
        found = []
        for page, c in contracts:
            mine = sorted(self.calls(c), key=c.names.index)
            first = re.split(r"(?<=[.:]) ", " ".join(c.text).strip() or page.title)[0]
            found += [f"# CUT {mine[0]}", "", "# NAME", "",
                      ", ".join(mine) + r" \- " + self.bare(first.rstrip(".:")), "",
                      "# SYNOPSIS", "", "```", "#include <volt.h>", "", *c.code, "```", "",
                      "# DESCRIPTION", "", *self.man_blocks(c.text)]
            for key, value in c.fields.items():
                title = {"returns": "RETURN VALUE"}.get(key, key.upper())
                found += [f"# {title}", ""]
                for item in value.split(" | ") if key == "returns" else [value]:
                    found += [self.bare(item), ""]
            places = self.examples_of(c)
            if places:
                found += ["# EXAMPLE", ""]
                found += [line for p in places for line in ("```", *p[2], "```", "")]
            found += ["# SEE ALSO", "", "**volt**(7)", ""]
        text = pandoc("\n".join(found), "markdown-smart", "man")
        pages = re.split(r"^\.SH CUT (\w+)\n", text, flags=re.M)[1:]
        folder = os.path.join(self.man, "man3")
        os.makedirs(folder)
        for name, body in zip(pages[::2], pages[1::2]):
            self.write_man_page(folder, name, 3, body)
        for _, c in contracts:
            mine = sorted(self.calls(c), key=c.names.index)
            for other in mine[1:]:
                with open(os.path.join(folder, other + ".3"), "w", encoding="utf-8") as f:
                    f.write(f".so man3/{mine[0]}.3\n")
        manual = next(p for p in self.pages if p.name == "manual")
        found = ["# NAME", "", r"volt \- an async runtime for C in one header", ""]
        for part in manual.parts:
            found += [f"# {part.title.upper()}", "", *self.man_blocks(part.text)]
        folder = os.path.join(self.man, "man7")
        os.makedirs(folder)
        self.write_man_page(folder, "volt", 7, pandoc("\n".join(found), "markdown-smart", "man"))

    @staticmethod
    def calls(contract):
        """The names of a contract that are called as functions are."""
        text = "\n".join(c for c in contract.code if not c.startswith("typedef"))
        return {n for n in contract.names if re.search(r"(?<!\w)" + n + r"\(", text)}

    def bare(self, text):
        return Text().inline(text)

    def man_blocks(self, lines):
        return Text().blocks(lines) + [""]

    def write_man_page(self, folder, name, section, body):
        with open(os.path.join(folder, f"{name}.{section}"), "w", encoding="utf-8") as f:
            f.write(f'.TH "{name}" "{section}" "" "volt.h {self.version}" "volt.h"\n.nh\n' + body)


def frames(body):
    """Blocks that may be wider than the page scroll by themselves; a keyboard reaches them."""
    body = re.sub(r"<table", '<div class="wide" tabindex="0"><table', body)
    body = body.replace("</table>", "</table></div>")
    return re.sub(r"<pre\b", '<pre tabindex="0"', body)


def plain_text(text):
    return html.unescape(re.sub(r"<[^>]+>", "", text))


def pandoc(text, reader, writer):
    done = subprocess.run(["pandoc", "-f", reader, "-t", writer, "--no-highlight",
                           "--wrap=preserve"],
                          input=text, capture_output=True, text=True, check=False)
    if done.returncode or done.stderr:
        sys.exit("pandoc: " + done.stderr)
    return done.stdout


def main(out):
    shutil.rmtree(out, ignore_errors=True)
    site = Site(out)
    os.makedirs(site.html)
    site.write_header_pages()
    site.write_functions()
    site.write_guides()
    site.write_sources()
    site.write_index()
    site.write_man()
    for name in ("style.css", "search.js"):
        shutil.copy(os.path.join(HERE, name), site.html)
    pages = sum(len(files) for _, _, files in os.walk(site.html)) - 3
    manuals = sum(len(files) for _, _, files in os.walk(site.man))
    print(f"doc: {pages} pages, {manuals} man pages, {len(site.index)} entries of the index")
    if site.without_example:
        print("without an example: " + " ".join(sorted(site.without_example)))


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(os.path.abspath(sys.argv[1]))
