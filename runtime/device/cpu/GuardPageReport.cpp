//===- GuardPageReport.cpp - stray accesses as errors ---------------------===//
#include "runtime/device/cpu/GuardPageReport.h"

#include "runtime/device/cpu/CpuArena.h"

#include <csignal>
#include <cstring>
#include <signal.h>
#include <unistd.h>

namespace ds::runtime {
namespace {

struct sigaction before;

void write(const char *text) {
  if (::write(STDERR_FILENO, text, std::strlen(text)) < 0)
    ::_exit(1);
}

void onFault(int signal, siginfo_t *info, void *) {
  const char *space = guardPageOwner(info->si_addr);
  if (space == nullptr) { // not ours: return with the old action in place, and the access faults again
    ::sigaction(signal, &before, nullptr);
    return;
  }
  write("error: a command touched the guard page beside the ");
  write(space);
  write(" arena: a kernel reads or writes past its operands\n");
  ::_exit(1);
}

} // namespace

void reportGuardPageHits() {
  struct sigaction action{};
  action.sa_sigaction = onFault;
  action.sa_flags = SA_SIGINFO;
  ::sigemptyset(&action.sa_mask);
  ::sigaction(SIGSEGV, &action, &before);
}

} // namespace ds::runtime
