//===- inject_fault.cpp - runs a command and lets one of its system calls fail
//
//   inject_fault --under FOLDER --call write --number 3 --error ENOSPC -- ds-run p.dsplan ...
//
// A seccomp filter stops the command at the calls of the table below, and ptrace decides there what becomes of each: so
// nothing gets past, whatever library makes the call. Calls are counted by kind, of all threads and child processes,
// and only where their file lies under a FOLDER (--under may be repeated). Without --number nothing fails. With --log
// FILE the counts, and what became of the fault, are written there as JSON.
//
// Errors: a name such as EIO; SHORT (a read or write moves half of its bytes); SHRINK (FILE of --shrink is cut to
// half its size before the call, which then goes on). "--number 3+" is the third and all that follow. The exit code is
// the command's, or 128 and its signal. For Linux on x86-64.
//
//===----------------------------------------------------------------------===//
#include <algorithm>
#include <array>
#include <asm/unistd.h>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>
#include <vector>

namespace {

/// A system call: its number, our kind, and which arguments name its file; -1: none.
struct Call {
  int number;
  const char *kind;
  int descriptor, folder, path; // indices of arguments; `folder`: of the descriptor that `path` is relative to
  int count = -1;               // of bytes, or of pieces; what SHORT halves
};

constexpr Call table[] = {
    {__NR_open, "open", -1, -1, 0},
    {__NR_creat, "open", -1, -1, 0},
    {__NR_openat, "open", -1, 0, 1},
    {__NR_openat2, "open", -1, 0, 1},
    {__NR_read, "read", 0, -1, -1, 2},
    {__NR_pread64, "read", 0, -1, -1, 2},
    {__NR_readv, "read", 0, -1, -1, 2},
    {__NR_preadv, "read", 0, -1, -1, 2},
    {__NR_preadv2, "read", 0, -1, -1, 2},
    {__NR_getdents64, "read", 0, -1, -1},
    {__NR_write, "write", 0, -1, -1, 2},
    {__NR_pwrite64, "write", 0, -1, -1, 2},
    {__NR_writev, "write", 0, -1, -1, 2},
    {__NR_pwritev, "write", 0, -1, -1, 2},
    {__NR_pwritev2, "write", 0, -1, -1, 2},
    {__NR_sendfile, "write", 0, -1, -1, 3},
    {__NR_copy_file_range, "write", 2, -1, -1, 4},
    {__NR_fsync, "fsync", 0, -1, -1},
    {__NR_fdatasync, "fsync", 0, -1, -1},
    {__NR_sync_file_range, "fsync", 0, -1, -1},
    {__NR_rename, "rename", -1, -1, 0},
    {__NR_renameat, "rename", -1, 0, 1},
    {__NR_renameat2, "rename", -1, 0, 1},
    {__NR_link, "rename", -1, -1, 0},
    {__NR_linkat, "rename", -1, 0, 1},
    {__NR_mkdir, "mkdir", -1, -1, 0},
    {__NR_mkdirat, "mkdir", -1, 0, 1},
    {__NR_mmap, "mmap", 4, -1, -1},
    {__NR_truncate, "truncate", -1, -1, 0},
    {__NR_ftruncate, "truncate", 0, -1, -1},
    {__NR_fallocate, "truncate", 0, -1, -1},
    {__NR_close, "close", 0, -1, -1},
    {__NR_unlink, "unlink", -1, -1, 0},
    {__NR_unlinkat, "unlink", -1, 0, 1},
    {__NR_stat, "stat", -1, -1, 0},
    {__NR_lstat, "stat", -1, -1, 0},
    {__NR_fstat, "stat", 0, -1, -1},
    {__NR_newfstatat, "stat", -1, 0, 1},
    {__NR_statx, "stat", -1, 0, 1},
    {__NR_access, "stat", -1, -1, 0},
    {__NR_faccessat, "stat", -1, 0, 1},
    {__NR_faccessat2, "stat", -1, 0, 1},
    {__NR_statfs, "stat", -1, -1, 0},
    {__NR_fstatfs, "stat", 0, -1, -1},
    {__NR_readlink, "stat", -1, -1, 0},
    {__NR_readlinkat, "stat", -1, 0, 1},
    {__NR_lseek, "lseek", 0, -1, -1},
    {__NR_chmod, "chmod", -1, -1, 0},
    {__NR_fchmod, "chmod", 0, -1, -1},
    {__NR_flock, "flock", 0, -1, -1},
    {__NR_fcntl, "fcntl", 0, -1, -1},
};

constexpr std::pair<std::string_view, int> errors[] = {
    {"ENOSPC", ENOSPC}, {"EIO", EIO},       {"EINTR", EINTR},   {"EMFILE", EMFILE},
    {"ENOMEM", ENOMEM}, {"EACCES", EACCES}, {"EDQUOT", EDQUOT}, {"EROFS", EROFS},
    {"ENFILE", ENFILE}, {"ENOLCK", ENOLCK}, {"ENOENT", ENOENT}, {"EPERM", EPERM},
    {"EINVAL", EINVAL}, {"ESTALE", ESTALE}, {"SHORT", -1},      {"SHRINK", -2},
};
constexpr int shortTransfer = -1, shrink = -2;

struct Options {
  std::vector<std::string> under;
  std::string call, shrunk, log;
  long number = 0; // 0: nothing fails
  bool andLater = false;
  int error = EIO;
  char **command = nullptr;
};

[[noreturn]] void die(const std::string &text) {
  std::fprintf(stderr, "inject_fault: %s\n", text.c_str());
  std::exit(125);
}

int errorNamed(std::string_view name) {
  for (const auto &[word, number] : errors)
    if (word == name)
      return number;
  die("no error is called " + std::string(name));
}

/// A folder as the kernel will name files in it.
std::string resolved(const char *path) {
  std::array<char, PATH_MAX> text;
  return ::realpath(path, text.data()) != nullptr ? text.data() : path;
}

Options parse(int argc, char **argv) {
  Options options;
  int i = 1;
  for (; i < argc && std::strcmp(argv[i], "--") != 0; i += 2) {
    const std::string_view flag = argv[i];
    if (i + 1 == argc)
      die("what does " + std::string(flag) + " say?");
    const std::string value = argv[i + 1];
    if (flag == "--under")
      options.under.push_back(resolved(argv[i + 1]));
    else if (flag == "--call")
      options.call = value;
    else if (flag == "--number") {
      options.number = std::atol(value.c_str());
      options.andLater = value.ends_with('+');
    } else if (flag == "--error")
      options.error = errorNamed(value);
    else if (flag == "--shrink")
      options.shrunk = value;
    else if (flag == "--log")
      options.log = value;
    else
      die("no flag is called " + std::string(flag));
  }
  if (i + 1 >= argc)
    die("no command follows --");
  options.command = argv + i + 1;
  return options;
}

/// Stops the process at the calls of the table, and lets all others be.
void installFilter() {
  std::vector<sock_filter> program = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr))};
  for (const Call &call : table) {
    program.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, uint32_t(call.number), 0, 1));
    program.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRACE));
  }
  program.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
  const sock_fprog all{static_cast<unsigned short>(program.size()), program.data()};
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &all) != 0)
    die(std::string("no filter of system calls here: ") + std::strerror(errno));
}

using Registers = user_regs_struct;

unsigned long long &argument(Registers &registers, int index) {
  unsigned long long *const all[] = {&registers.rdi, &registers.rsi, &registers.rdx,
                                     &registers.r10, &registers.r8,  &registers.r9};
  return *all[index];
}

std::string link(const std::string &path) {
  std::array<char, PATH_MAX> text;
  const ssize_t length = ::readlink(path.c_str(), text.data(), text.size());
  return length < 0 ? "" : std::string(text.data(), size_t(length));
}

std::string textAt(pid_t process, uint64_t address) {
  std::string text;
  for (char byte = 0; text.size() < PATH_MAX; text += byte) {
    const iovec here{&byte, 1}, there{reinterpret_cast<void *>(address + text.size()), 1}; // NOLINT: another process's
    if (::process_vm_readv(process, &here, 1, &there, 1, 0) != 1 || byte == '\0')
      break;
  }
  return text;
}

/// The file that a call is about.
std::string fileOf(pid_t process, const Call &call, Registers &registers) {
  const std::string here = "/proc/" + std::to_string(process);
  const auto descriptor = [&](int index) {
    const int number = int(argument(registers, index));
    return number == AT_FDCWD ? link(here + "/cwd") : link(here + "/fd/" + std::to_string(number));
  };
  if (call.descriptor >= 0)
    return descriptor(call.descriptor);
  const std::string path = textAt(process, argument(registers, call.path));
  if (path.starts_with('/'))
    return path;
  const std::string base = call.folder >= 0 ? descriptor(call.folder) : link(here + "/cwd");
  return path.empty() ? base : base + "/" + path;
}

class Tracer {
public:
  explicit Tracer(const Options &options) : options_(options) {}

  /// Until the command and all that it started has ended; its exit code.
  int run(pid_t command) {
    int status = 0, code = 125;
    known_.insert(command);
    for (pid_t thread = 0; (thread = ::waitpid(-1, &status, __WALL)) > 0 || errno == EINTR;) {
      if (thread < 0)
        continue;
      if (WIFEXITED(status) || WIFSIGNALED(status)) {
        if (thread == command)
          code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
        continue;
      }
      stopped(thread, status);
    }
    return code;
  }

  void writeLog() const {
    std::FILE *file = options_.log.empty() ? nullptr : std::fopen(options_.log.c_str(), "w");
    if (file == nullptr)
      return;
    std::fputs("{\"counts\": {", file);
    const char *separator = "";
    for (const auto &[kind, count] : counts_)
      std::fprintf(file, "%s\"%s\": %ld", std::exchange(separator, ", "), kind.c_str(), count);
    std::fprintf(file, "}, \"injected\": %ld, \"file\": \"%s\"}\n", injected_, file_.c_str());
    std::fclose(file);
  }

private:
  void stopped(pid_t thread, int status) {
    const int event = status >> 16, signal = WSTOPSIG(status);
    if (signal == (SIGTRAP | 0x80)) { // the end of a call that has been carried out and shall have failed
      Registers registers;
      ::ptrace(PTRACE_GETREGS, thread, nullptr, &registers);
      registers.rax = static_cast<unsigned long long>(-options_.error);
      ::ptrace(PTRACE_SETREGS, thread, nullptr, &registers);
      ::ptrace(PTRACE_CONT, thread, nullptr, nullptr);
    } else if (event == PTRACE_EVENT_SECCOMP) {
      ::ptrace(atCall(thread), thread, nullptr, nullptr);
    } else {
      const bool ours = event != 0 || (signal == SIGSTOP && known_.insert(thread).second);
      ::ptrace(PTRACE_CONT, thread, nullptr, ours ? 0 : signal);
    }
  }

  /// Counts a call and lets it fail if it is its turn; how the thread is to go on.
  __ptrace_request atCall(pid_t thread) {
    Registers registers;
    if (::ptrace(PTRACE_GETREGS, thread, nullptr, &registers) != 0)
      return PTRACE_CONT;
    const Call *call = std::ranges::find(table, int(registers.orig_rax), &Call::number);
    const std::string file = call != std::end(table) ? fileOf(thread, *call, registers) : "";
    const bool named = std::ranges::any_of(options_.under, [&](const std::string &folder) {
      return file.starts_with(folder) && (file.size() == folder.size() || file[folder.size()] == '/' || folder == "/");
    });
    if (!named)
      return PTRACE_CONT;
    const long count = ++counts_[call->kind];
    if (options_.call != call->kind || options_.number == 0 ||
        !(options_.andLater ? count >= options_.number : count == options_.number))
      return PTRACE_CONT;
    file_ = file;
    return inject(thread, *call, registers);
  }

  __ptrace_request inject(pid_t thread, const Call &call, Registers &registers) {
    if (options_.error == shrink) {
      struct stat status;
      injected_ +=
          ::stat(options_.shrunk.c_str(), &status) == 0 && ::truncate(options_.shrunk.c_str(), status.st_size / 2) == 0;
      return PTRACE_CONT;
    }
    if (options_.error == shortTransfer) {
      if (call.count < 0 || argument(registers, call.count) < 2)
        return PTRACE_CONT; // there is no half of it
      argument(registers, call.count) /= 2;
    } else if (std::string_view(call.kind) == "close") { // a descriptor is gone, whatever close says
      ++injected_;
      return PTRACE_SYSCALL;
    } else {
      registers.orig_rax = static_cast<unsigned long long>(-1); // no call at all
      registers.rax = static_cast<unsigned long long>(-options_.error);
    }
    ::ptrace(PTRACE_SETREGS, thread, nullptr, &registers);
    ++injected_;
    return PTRACE_CONT;
  }

  const Options &options_;
  std::map<std::string, long> counts_;
  std::set<pid_t> known_; // threads whose first stop has been seen
  long injected_ = 0;
  std::string file_;
};

} // namespace

int main(int argc, char **argv) {
  const Options options = parse(argc, argv);
  const pid_t command = ::fork();
  if (command == 0) {
    ::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr);
    ::raise(SIGSTOP);
    installFilter();
    ::execvp(options.command[0], options.command);
    die(std::string("cannot start ") + options.command[0] + ": " + std::strerror(errno));
  }
  int status = 0;
  ::waitpid(command, &status, 0);
  if (::ptrace(PTRACE_SETOPTIONS, command, nullptr,
               PTRACE_O_TRACESECCOMP | PTRACE_O_TRACECLONE | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK |
                   PTRACE_O_TRACEEXEC | PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL) != 0) {
    ::kill(command, SIGKILL);
    die(std::string("cannot trace a process here: ") + std::strerror(errno));
  }
  ::ptrace(PTRACE_CONT, command, nullptr, nullptr);
  Tracer tracer(options);
  const int code = tracer.run(command);
  tracer.writeLog();
  return code;
}
