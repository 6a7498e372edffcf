#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR 0BSD
"""Checks the pages that pages.py has made.

    python3 examples/packaging/pages/check.py DIRECTORY      with DIRECTORY/html and DIRECTORY/man

Every public function of volt.h, as the preprocessor finds them, has an anchor, an entry of the
search, an example and a man page; no line of the manual and of the contracts is missing; all links
lead to a page and to an anchor on it; man shows the man pages without a warning. In headless
Chromium, in light and dark and at the widths of a phone and of a desktop: nothing is wider than the
page, the contrast of all text is at least 4.5, and the search finds functions without a server.
Pictures are kept in DIRECTORY/pictures. Ends with "doc: N passed, N failed".
"""
import base64
import html
import html.parser
import os
import re
import subprocess
import sys
import tempfile
import urllib.parse

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", "..", ".."))
sys.path.insert(0, os.path.join(ROOT, "tests", "tools"))
import dashboard  # noqa: E402

WIDTHS = {"phone": (390, 844, True), "desktop": (1280, 900, False)}
PICTURES = ("index", "manual", "api-channels", "benchmarks", "functions", "types")
count = {"ok": 0, "failed": 0}

# Text whose contrast with what is behind it is less than WCAG requires (AA); in pictures, too.
CONTRAST = dashboard.CONTRAST.replace(
    "parse(getComputedStyle(e).color)",
    "parse(getComputedStyle(e)[e instanceof SVGElement ? 'fill' : 'color'])").replace(
    "c.length < 4 || c[3] === 1", "c.length === 3").replace(
    "'.unseen, noscript'", "'title, style, script'")
WIDER = """
[...document.querySelectorAll('body *')].filter(e => {
  const box = e.getBoundingClientRect();
  if (box.width === 0 || box.right <= innerWidth + 1) return false;
  for (let p = e.parentElement; p; p = p.parentElement)
    if (['auto', 'scroll'].includes(getComputedStyle(p).overflowX)) return false;
  return true;
}).slice(0, 3).map(e => e.tagName + ' ' + e.textContent.slice(0, 30)).join('; ')
"""


def check(problems, what):
    count["failed" if problems else "ok"] += 1
    print(f"  {'FAIL' if problems else 'ok'}    {what}")
    for problem in problems[:20]:
        print(f"        | {problem}")


class Links(html.parser.HTMLParser):
    def __init__(self):
        super().__init__()
        self.ids, self.links = [], []

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        if attrs.get("id"):
            self.ids.append(attrs["id"])
        self.links += [attrs[name] for name in ("href", "src") if attrs.get(name)]


def public_functions():
    """The functions that the preprocessor leaves of the interface, and the macros that are called
    as functions are."""
    program = "#define VOLT_API public_function\n#define VOLT_DEBUG 0\n#include <stdint.h>\n"
    done = subprocess.run(["cc", "-E", "-P", "-I" + ROOT, "-x", "c", "-"], check=True, text=True,
                          input=program + '#include "volt.h"\n', capture_output=True)
    text = re.sub(r"__attribute__\s*\(\(.*?\)\)", " ", done.stdout)
    names = re.findall(r"\bpublic_function\b[^;(]*?(\w+)\(", text)
    names += re.findall(r"\bstatic inline \w[\w *]*?\b(volt_\w+)\(", text)
    done = subprocess.run(["cc", "-E", "-dM", "-I" + ROOT, "-x", "c", "-"], check=True, text=True,
                          input=program + '#include "volt.h"\n', capture_output=True)
    names += re.findall(r"^#define ((?:volt|VOLT)_\w+)\(", done.stdout, re.M)
    return sorted({n for n in names if "__" not in n})


def check_functions(out, pages):
    names = public_functions()
    check([] if len(names) > 300 else [f"only {len(names)}"], "the interface has many functions")
    place = {anchor: path for path, page in pages.items() if "/" not in path
             for anchor in page.ids}
    check([n for n in names if n not in place], f"each of {len(names)} functions has an anchor")
    with open(os.path.join(out, "html", "search-index.js"), encoding="utf-8") as f:
        index = set(re.findall(r'\["(\w+)"', f.read()))
    check([n for n in names if n not in index], "each has an entry of the search")
    man = os.path.join(out, "man", "man3")
    check([n for n in names if not os.path.exists(os.path.join(man, n + ".3"))],
          "each has a man page")
    without = []
    for path in sorted(set(place[n] for n in names if n in place)):
        with open(os.path.join(out, "html", path), encoding="utf-8") as f:
            text = f.read()
        examples = " ".join(re.findall(r"Example</strong></p>(.*?)(?=<h[23]|</main>)", text, re.S))
        for n in names:  # a public macro of the same name is as good
            calls = {n, n.upper()}.intersection(names)
            if place.get(n) == path and not any(c + "(" in examples for c in calls):
                without.append(n)
    check(without, "each has an example")


def check_text(out):
    """Compares letters only: spaces, signs and the marks of fields are set in another way."""
    def letters(text):
        return re.sub(r"[\W_]+", "", text).lower()

    with open(os.path.join(ROOT, "volt.h"), encoding="utf-8") as f:
        lines = f.read().split("\n")
    made = ""
    for name in sorted(os.listdir(os.path.join(out, "html"))):
        if name.endswith(".html"):
            with open(os.path.join(out, "html", name), encoding="utf-8") as f:
                made += letters(html.unescape(re.sub(r"<[^>]*>", "", f.read())))
    section, missing, number = "", [], 0
    for at, line in enumerate(lines, 1):
        banner = re.match(r"// >>(\w+)  ", line)
        section = banner[1] if banner else section
        if section not in ("manual", "api") or banner or not line.startswith("//"):
            continue
        # the marks of fields, the numbers of lists, and names of sections, which become titles
        text = re.sub(r"^//   (where|returns|wakes|memory|Order) *:|^//     // fragment|^//  \d\. ",
                      "", line)
        number += 1
        if any(letters(part) not in made for part in re.split(r">>\w+", text)):
            missing.append(f"volt.h:{at}: {line}")
    check(missing, f"each of {number} lines of the manual and of the contracts is on a page")


def check_man(out):
    said = []
    for folder, _, names in os.walk(os.path.join(out, "man")):
        for name in sorted(names):
            done = subprocess.run(["man", "--warnings", "-E", "UTF-8", "-l", name], text=True,
                                  cwd=folder, capture_output=True, check=False,
                                  env={**os.environ, "MANPATH": os.path.join(out, "man")})
            if done.stderr or len(done.stdout) < 200:
                said.append(f"{name}: {done.stderr.strip() or 'too short'}")
    check(said, "man shows each page without a warning")


def check_links(out, pages):
    broken, twice, outside = [], [], set()
    for path, page in pages.items():
        twice += [f"{path}: {i}" for i in set(page.ids) if page.ids.count(i) > 1]
        for link in page.links:
            if re.match(r"https?:", link):
                outside.add(link)
                continue
            if link.startswith("data:"):
                continue
            to, _, anchor = link.partition("#")
            to = os.path.normpath(os.path.join(os.path.dirname(path), urllib.parse.unquote(to))) \
                if to else path
            if not os.path.exists(os.path.join(out, "html", to)):
                broken.append(f"{path}: {link}")
            elif anchor and to in pages and urllib.parse.unquote(anchor) not in pages[to].ids:
                broken.append(f"{path}: {link}")
    check(broken, f"all links of {len(pages)} pages lead somewhere")
    check(twice, "no anchor stands twice on a page")
    print(f"        {len(outside)} links to other sites are not followed")


def look_at(browser, out, path):
    """Opens a page in each width and each scheme; returns its problems."""
    problems = []
    browser.call("Page.navigate", url="file://" + os.path.join(out, "html", path))
    browser.wait("the page " + path, "document.readyState === 'complete' && "
                 f"location.pathname.endsWith({path!r})")
    for name, (width, height, is_phone) in WIDTHS.items():
        for scheme in ("light", "dark"):
            browser.look(width, height, scheme, is_phone)
            where = f"{path}, {name}, {scheme}"
            if browser.value("document.documentElement.scrollWidth") > width:
                problems.append(f"{where}: wider than {width}: " + browser.value(WIDER))
            bad = browser.value(CONTRAST)
            if bad:
                problems.append(f"{where}: contrast of {bad[:200]}")
            if path[:-len(".html")] in PICTURES:
                data = browser.call("Page.captureScreenshot")["data"]
                with open(os.path.join(out, "pictures",
                                       f"{path[:-len('.html')]}-{name}-{scheme}.png"), "wb") as f:
                    f.write(base64.b64decode(data))
    return problems


def typed(browser, text):
    browser.value(f"(() => {{ input.focus(); input.value = {text!r};"
                  "input.dispatchEvent(new Event('input', { bubbles: true })); })()")


def check_search(browser, out):
    said = []
    first = "list.querySelector('li[role=option] a')"
    for page, up in (("index.html", ""), ("source/examples/03_echo.c.html", "../../")):
        browser.call("Page.navigate", url="file://" + os.path.join(out, "html", page))
        browser.wait("the search of " + page,
                     "document.readyState === 'complete' && typeof searchIndex !== 'undefined'")
        for text, target in (("volt_chan_send", "api-channels.html#volt_chan_send"),
                             ("chan send_n", "api-channels.html#volt_chan_send_n"),
                             ("CANCELLATION", "manual.html#cancellation"),
                             ("use tls", "guide.html#use-tls")):
            typed(browser, text)
            found = browser.value(f"{first}?.getAttribute('href')")
            if found != up + target:
                said.append(f"{page}: {text}: {found}")
    check(said, "the search finds functions, parts of the manual, and guides")
    typed(browser, "no such thing at all")
    check([] if browser.value("list.textContent") == "Nothing found" else ["no message"],
          "the search says that it has found nothing")
    typed(browser, "volt_mutex_lock")
    for key in ("ArrowDown", "ArrowUp", "Enter"):
        browser.value("input.dispatchEvent(new KeyboardEvent('keydown', { key: '%s', bubbles: true,"
                      "cancelable: true }))" % key, dashboard.not_yet)  # Enter leaves the page
    browser.wait("the page of the function",
                 "location.hash === '#volt_mutex_lock' && document.readyState === 'complete'")
    check([], "the search is used by the keyboard")


def check_browser(out, pages):
    os.makedirs(os.path.join(out, "pictures"), exist_ok=True)
    looked = sorted(p for p in pages if not p.startswith("source/"))
    looked += sorted(p for p in pages if p.startswith("source/"))[::12]
    with tempfile.TemporaryDirectory() as place:
        browser = dashboard.Browser(place)
        try:
            problems = [problem for path in looked for problem in look_at(browser, out, path)]
            check(problems, f"{len(looked)} pages at {len(WIDTHS)} widths in light and dark: "
                            "nothing sticks out, contrast at least 4.5")
            check_search(browser, out)
            check(browser.complaints, "no complaint in the console")
        finally:
            browser.close()


def main(out):
    pages = {}
    for folder, _, names in os.walk(os.path.join(out, "html")):
        for name in sorted(names):
            if name.endswith(".html"):
                path = os.path.join(folder, name)
                page = pages[os.path.relpath(path, os.path.join(out, "html"))] = Links()
                with open(path, encoding="utf-8") as f:
                    page.feed(f.read())
    check_functions(out, pages)
    check_text(out)
    check_links(out, pages)
    check_man(out)
    check_browser(out, pages)
    print(f"doc: {count['ok']} passed, {count['failed']} failed")
    sys.exit(count["failed"] > 0)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(os.path.abspath(sys.argv[1]))
