//===- SideChannels.cpp - what must not end a training run ----------------===//
#include "tools/ds-run/SideChannels.h"

#include <csignal>
#include <fcntl.h>
#include <signal.h>
#include <string_view>
#include <unistd.h>

namespace ds::run {
namespace {

void sayOnce(int signal) {
  constexpr std::string_view text =
      "note: SIGHUP came, as when a terminal is closed; the run goes on, SIGTERM would end it\n";
  (void)!::write(STDERR_FILENO, text.data(), text.size());
  std::signal(signal, SIG_IGN);
}

} // namespace

void outliveSideChannels() {
  while (true) {
    const int lowest = ::open("/dev/null", O_RDWR); // the lowest that is free
    if (lowest > STDERR_FILENO)
      ::close(lowest);
    if (lowest < 0 || lowest > STDERR_FILENO)
      break;
  }
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
  struct sigaction hangup;
  if (::sigaction(SIGHUP, nullptr, &hangup) == 0 && hangup.sa_handler != SIG_IGN) // by nohup
    std::signal(SIGHUP, sayOnce);
}

} // namespace ds::run
