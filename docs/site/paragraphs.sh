#!/bin/sh
# Doxygen's view of a header: each headed line of a contract (Shape, Errors, ...) is a paragraph.
exec sed -E 's/^ \* ( *)(Shape|In place|Units|Agreement|Errors|Threads|Stream|Memory|Result|Cost|Source|Waits|Padding)  +/ *\n * **\2.** /' "$1"
