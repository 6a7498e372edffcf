# SPDX-License-Identifier: MIT OR 0BSD
# volt.h in two parts, so that many test programs share one compilation of the implementation:
#   awk -v part=unit -f tests/lib/unit.awk volt.h    the implementation, its private functions external
#   awk -v part=head -f tests/lib/unit.awk volt.h    the same with a declaration in place of each body
# A test includes the second one as "volt.h", with the implementation's private types, macros and
# inline functions, and is linked with the first one. Functions begin at the left margin and end with
# a brace there; inline functions stay as they are. Objects that are not initialised become external
# too; see `objects`.
BEGIN { objects = "^static [a-z_ ]*\\*?volt__[a-z_]+;|^static struct volt__lock_waiters [{]" }

/^#endif \/\/ VOLT_H/ {
    in_implementation = 1
    print
    n = split("SYS NOW_NS FUTEX_WAIT FUTEX_WAKE THREAD_CREATE EPOLL_WAIT ASSERT PANIC TRACE", own, " ")
    for (i = 1; part == "head" && i <= n; i++)
        print "#ifdef VOLT_" own[i] "\n#  error VOLT_" own[i] ": no test of SHARED in tests/test.mk\n#endif"
    next
}
!in_implementation { print; next }

# ---- inside a body
in_body {
    if (part == "unit") print
    if (/^}/) in_body = 0
    next
}
in_object {
    if (/^}/) {
        in_object = 0
        if (part == "head") sub(/^} /, "};\nextern struct volt__lock_waiters ")
    }
    print
    next
}
$0 ~ objects {
    sub(/^static /, "")
    if (/[{]$/) in_object = 1
    else if (part == "head") $0 = "extern " $0
    print
    next
}

# ---- the head of a function, up to its brace; several lines are kept in `head`
head == "" && /^(static|VOLT_API) / && !/(^| )(inline|VOLT__HOT|VOLT__SMALL) / && /\(/ && !/^[^(]*=/ { head = " " }
head != "" {
    code = $0
    sub(/ *\/\/.*/, "", code)
    if (code ~ /[{]/) {
        text = code
        sub(/ *[{].*/, "", text)
        head = head == " " ? text : head "\n" text
        sub(/^static /, "", head)
        if (part == "head") {
            print head ";"
        } else {
            rest = $0
            sub(/^[^{]*/, "", rest)
            print head " " rest
        }
        # a body in one line ends there
        in_body = code !~ /} *$/
        head = ""
    } else if (code ~ /; *$/) { # a declaration
        head = head == " " ? $0 : head "\n" $0
        sub(/^static /, "", head)
        print head
        head = ""
    } else head = head == " " ? $0 : head "\n" $0
    next
}
{ print }
