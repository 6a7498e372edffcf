# SPDX-License-Identifier: MIT OR 0BSD
# Deliberate defects: applies the edits of each entry of a list to a copy of volt.h. A script puts
# its own rules behind these: those that begin an entry call finish(), call begin() and set `name`;
# its finish() calls is_chosen() and apply(). Variables: out, the directory with one directory for
# each entry; only, " name... " or two blanks for all; applies_only: the copies are not written.
# An entry has edits of one line each. "- text" is replaced by the "+ text" behind it, or deleted.
# It must be found once in volt.h, or, below "@ text", in or behind the first line with that text.
function put(file, what) { print what > (out "/" name "/" file); close(out "/" name "/" file) }
function begin() { at_line = ""; n_edits = 0 }
# Returns 1, and makes the directory, if the entry is to be applied.
function is_chosen() {
    if (name == "" || (only != "  " && !index(only, " " name " "))) return 0
    system("mkdir -p " out "/" name)
    return 1
}
# Writes the changed volt.h, or to the file `broken` why the entry does not fit.
function apply(    i, k, n, from, at) {
    if (name in done) { put("broken", "two have this name"); return }
    done[name] = 1
    for (i = 1; i <= n_lines; i++) text[i] = line[i]
    for (k = 1; k <= n_edits; k++) {
        from = 1
        if (after[k] != "") {
            for (from = 1; from <= n_lines && !index(line[from], after[k]); from++) {}
        }
        n = 0
        for (i = from; i <= n_lines; i++)
            if (index(text[i], old[k]) && (after[k] == "" || n == 0)) { at = i; n++ }
        if (n != 1) {
            put("broken", "its line is " (n ? n " times" : "not") " in volt.h: " old[k])
            return
        }
        n = index(text[at], old[k])
        if (old[k] ~ /\/\// && new[k] !~ /\/\// && n + length(old[k]) <= length(text[at])) {
            put("broken", "it cuts a comment of volt.h: " old[k])
            return
        }
        text[at] = substr(text[at], 1, n - 1) new[k] substr(text[at], n + length(old[k]))
    }
    if (applies_only) return
    for (i = 1; i <= n_lines; i++) print text[i] > (out "/" name "/volt.h")
    close(out "/" name "/volt.h")
}
FNR == NR { line[FNR] = $0; n_lines = FNR; next }
/^@ / { at_line = substr($0, 3) }
/^- / { old[++n_edits] = substr($0, 3); new[n_edits] = ""; after[n_edits] = at_line; at_line = "" }
/^\+ / { new[n_edits] = substr($0, 3) }
END { finish() }
