// Completion scripts and manual pages of a small program, whole: what shells and man read of each kind of option.
#include <tenon/cli/manual/completion.h>
#include <tenon/cli/manual/man_page.h>

#include <gtest/gtest.h>

#include <string>

namespace tenon::cli {
namespace {

/// With a verb that has every kind of option and one that has verbs below it.
VerbFacts small_program() {
  VerbFacts shave{
      .name = "shave",
      .path = "tenon shave",
      .help = "take it off: 'thin'",
      .footer = "Example:\n  tenon shave oak -n 2\n\n.5 mm a time\n'thin' is 0.1\\0.2",
      .options = {
          {.names = {"board"},
           .value = "FILE",
           .help = "wood",
           .kind = ValueKind::kFile,
           .is_positional = true,
           .is_required = true},
          {.names = {"-h", "--help"}, .help = "this"},
          {.names = {"-n", "--count"}, .value = "N", .help = "how often [most]", .kind = ValueKind::kText},
          {.names = {"--with"}, .value = "SPEC", .help = "irons", .kind = ValueKind::kAllocator, .is_repeated = true},
          {.names = {"-i", "--into"},
           .value = "DIR",
           .help = "where\\to",
           .kind = ValueKind::kFolder,
           .is_repeated = true},
          {.names = {"--list"}, .value = "OUT", .help = "a list", .kind = ValueKind::kFile},
          {.names = {"--grain"}, .value = "WAY", .help = "", .kind = ValueKind::kWords, .words = {"with", "across"}}}};
  VerbFacts sharpen{.name = "sharpen",
                    .path = "tenon iron sharpen",
                    .help = "make it sharp",
                    .options = {{.names = {"stone"},
                                 .value = "STONE",
                                 .help = "",
                                 .kind = ValueKind::kWords,
                                 .words = {"fine", "coarse"},
                                 .is_positional = true,
                                 .is_repeated = true}}};
  VerbFacts iron{.name = "iron",
                 .path = "tenon iron",
                 .help = "its iron",
                 .footer = "Example:\n  tenon iron sharpen",
                 .verbs = {sharpen}};
  return {.name = "tenon",
          .path = "tenon",
          .help = "smooth wood",
          .footer = "Example:\n  tenon shave oak",
          .options = {{.names = {"-V", "--version"}, .help = "which"}},
          .verbs = {shave, iron}};
}

TEST(ManualOf, BashKnowsTheWordsAndTheValuesOfEachVerb) {
  EXPECT_EQ(bash_completion(small_program()), R"x(# Completion of tenon in bash; made by `tenon completion bash`.
_tenon() {
  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]} verb='' words='' i
  if [[ $cur == = ]]; then cur=''; elif [[ $prev == = ]]; then prev=${COMP_WORDS[COMP_CWORD - 2]}; fi
  for ((i = 1; i < COMP_CWORD; i++)); do
    case "$verb/${COMP_WORDS[i]}" in
      /shave | /iron | /iron/sharpen) verb+="/${COMP_WORDS[i]}" ;;
    esac
  done
  case "$verb:$prev" in
    /shave:--into | /shave:-i) COMPREPLY=($(compgen -d -- "$cur")) && return ;;
    /shave:--count | /shave:-n) compopt +o default +o bashdefault && return ;;
    /shave:--list) return ;;
    /shave:--with) words=$("${COMP_WORDS[0]}" completion allocators 2>/dev/null) ;;
    /shave:--grain) words='with across' ;;
    *)
      case "$verb" in
        '') words='shave iron -V --version' ;;
        '/iron') words='sharpen' ;;
        '/iron/sharpen') words=' fine coarse' ;;
        '/shave') words='-h --help -n --count --with -i --into --list --grain' ;;
      esac
      case "$verb" in
        '' | '/iron' | '/iron/sharpen') ;;
        *) [[ $cur == -* ]] || return ;; # files, by default
      esac
      ;;
  esac
  mapfile -t COMPREPLY < <(compgen -W "$words" -- "$cur")
}
complete -o bashdefault -o default -F _tenon tenon
)x");
}

TEST(ManualOf, FishHasALineForEachVerbAndOption) {
  EXPECT_EQ(fish_completion(small_program()), R"x(# Completion of tenon in fish; made by `tenon completion fish`.
complete -c tenon -f
complete -c tenon -n 'not __fish_seen_subcommand_from shave iron' -a shave -d 'take it off: \'thin\''
complete -c tenon -n 'not __fish_seen_subcommand_from shave iron' -a iron -d 'its iron'
complete -c tenon -n 'not __fish_seen_subcommand_from shave iron' -s V -l version -d 'which'
complete -c tenon -n '__fish_seen_subcommand_from shave' -F
complete -c tenon -n '__fish_seen_subcommand_from shave' -s h -l help -d 'this'
complete -c tenon -n '__fish_seen_subcommand_from shave' -s n -l count -x -d 'how often [most]'
complete -c tenon -n '__fish_seen_subcommand_from shave' -l with -r -F -a '(tenon completion allocators 2>/dev/null)' -d 'irons'
complete -c tenon -n '__fish_seen_subcommand_from shave' -s i -l into -x -a '(__fish_complete_directories)' -d 'where\\to'
complete -c tenon -n '__fish_seen_subcommand_from shave' -l list -r -F -d 'a list'
complete -c tenon -n '__fish_seen_subcommand_from shave' -l grain -x -a 'with across' -d ''
complete -c tenon -n '__fish_seen_subcommand_from iron; and not __fish_seen_subcommand_from sharpen' -a sharpen -d 'make it sharp'
complete -c tenon -n '__fish_seen_subcommand_from iron; and __fish_seen_subcommand_from sharpen' -a 'fine coarse'
)x");
}

TEST(ManualOf, ZshHasAFunctionForEachVerb) {
  EXPECT_EQ(zsh_completion(small_program()), R"x(#compdef tenon
# Completion of tenon in zsh; made by `tenon completion zsh`.
_tenon_allocators() { _values allocator ${(f)"$(tenon completion allocators 2>/dev/null)"} || _files; }

_tenon_shave() {
  _arguments -s \
    ':FILE:_files' \
    '(-h --help)'{-h,--help}'[this]' \
    '(-n --count)'{-n,--count}'[how often \[most\]]:N: ' \
    '*--with[irons]:SPEC:_tenon_allocators' \
    '*'{-i,--into}'[where\\to]:DIR:_files -/' \
    '--list[a list]:OUT:_files' \
    '--grain[]:WAY:(with across)'
}

_tenon_iron_sharpen() {
  _arguments -s \
    '*:STONE:(fine coarse)'
}

_tenon_iron() {
  local state line
  _arguments -s -C \
    '1:verb:->verb' '*::rest:->rest'
  case $state in
    verb)
      local -a verbs=( \
        'sharpen:make it sharp')
      _describe verb verbs ;;
    rest)
      case $line[1] in
        sharpen) _tenon_iron_sharpen ;;
      esac ;;
  esac
}

_tenon() {
  local state line
  _arguments -s -C \
    '(-V --version)'{-V,--version}'[which]' \
    '1:verb:->verb' '*::rest:->rest'
  case $state in
    verb)
      local -a verbs=( \
        'shave:take it off\: '\''thin'\''' \
        'iron:its iron')
      _describe verb verbs ;;
    rest)
      case $line[1] in
        shave) _tenon_shave ;;
        iron) _tenon_iron ;;
      esac ;;
  esac
}

if [[ $funcstack[1] == _tenon ]]; then _tenon "$@"; else compdef _tenon tenon; fi  # autoloaded, or sourced
)x");
}

TEST(ManualOf, TheProgramsPageListsItsVerbsAndVariables) {
  EXPECT_EQ(man_page(small_program(), "1.2"), R"x(.TH TENON 1 "" "tenon 1.2" "Tenon"
.SH NAME
tenon \- smooth wood
.SH SYNOPSIS
.B tenon
[\fIOPTIONS\fR]
\fIVERB\fR ...
.SH VERBS
.TP
\fBshave\fR
take it off: 'thin'; see \fBtenon\-shave\fR(1)
.TP
\fBiron\fR
its iron; see \fBtenon\-iron\fR(1)
.SH OPTIONS
.TP
\fB\-V, \-\-version\fR
which
.SH EXAMPLES
.PP
.nf
Example:
  tenon shave oak
.fi
.SH ENVIRONMENT
.TP
\fBCOLUMNS\fR
the width that tables fit, whatever the terminal says
.TP
\fBNO_COLOR\fR
no colours, when it is not empty
.TP
\fBCLICOLOR_FORCE\fR
colours in a file or a pipe too, when it is neither empty nor 0
.TP
\fBTENON_CUDA_LIBRARIES\fR
the folder of cuBLASLt and cuDNN; empty: neither is used
.TP
\fBTENON_PLUGIN_PATH\fR
folders of plugins, with colons between them
.TP
\fBTENON_\fISECTION\fB__\fIKEY\fR
a setting of an experiment, stronger than its file
)x");
}

TEST(ManualOf, AVerbsPageHasAllBelowIt) {
  EXPECT_EQ(man_page(small_program().verbs[1], "1.2"), R"x(.TH TENON-IRON 1 "" "tenon 1.2" "Tenon"
.SH NAME
tenon\-iron \- its iron
.SH SYNOPSIS
.B tenon iron
\fIVERB\fR ...
.SH VERBS
.SS tenon iron sharpen
.B tenon iron sharpen
[\fIstone\fR ...]
.PP
make it sharp.
.TP
\fBstone\fR

.SH OPTIONS
.SH EXAMPLES
.PP
.nf
Example:
  tenon iron sharpen
.fi
.SH SEE ALSO
\fBtenon\fR(1)
)x");
  EXPECT_EQ(man_page(small_program().verbs[0], "1.2"), R"x(.TH TENON-SHAVE 1 "" "tenon 1.2" "Tenon"
.SH NAME
tenon\-shave \- take it off: 'thin'
.SH SYNOPSIS
.B tenon shave
[\fIOPTIONS\fR]
\fIboard\fR
.SH OPTIONS
.TP
\fBboard\fR
wood
.TP
\fB\-h, \-\-help\fR
this
.TP
\fB\-n, \-\-count\fR \fIN\fR
how often [most]
.TP
\fB\-\-with\fR \fISPEC\fR
irons
.TP
\fB\-i, \-\-into\fR \fIDIR\fR
where\eto
.TP
\fB\-\-list\fR \fIOUT\fR
a list
.TP
\fB\-\-grain\fR \fIWAY\fR

.SH EXAMPLES
.PP
.nf
Example:
  tenon shave oak \-n 2
.PP
\&.5 mm a time
\&'thin' is 0.1\e0.2
.fi
.SH SEE ALSO
\fBtenon\fR(1)
)x");
}

}  // namespace
}  // namespace tenon::cli
