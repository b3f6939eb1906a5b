//===- StoreFuzzer.cpp - any bytes from one process to a run's store -------===//
//
// A store of two ranks. Rank 0 is honest: it waits for a value. Another connection sends the input, as a stranger, or
// as rank 1 once it has proved to be one (first byte odd), and ends. Rank 0 must then have its answer, within seconds:
// the value, that it did not come, or why the run has failed; a stranger must not be able to fail it.
//
//===----------------------------------------------------------------------===//
#include "runtime/comm/tcp/Admission.h"
#include "runtime/comm/tcp/Frame.h"
#include "runtime/comm/tcp/Socket.h"
#include "runtime/comm/tcp/StoreServer.h"

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <poll.h>
#include <span>
#include <string>
#include <sys/socket.h>
#include <sys/un.h>
#include <utility>

using namespace ds::runtime;
using namespace std::chrono_literals;

namespace {

const RunKey key{"run", "secret"};

/// An address without a name in a file system, so that no port is used up.
struct Place {
  sockaddr_un address{};
  socklen_t size = sizeof(sa_family_t);

  Socket listen() {
    address.sun_family = AF_UNIX;
    Socket socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0));
    if (::bind(socket.descriptor(), reinterpret_cast<sockaddr *>(&address), size) != 0 ||
        ::listen(socket.descriptor(), 8) != 0)
      std::abort();
    size = sizeof address;
    (void)::getsockname(socket.descriptor(), reinterpret_cast<sockaddr *>(&address), &size);
    return socket;
  }
  Socket connect() const {
    Socket socket(::socket(AF_UNIX, SOCK_STREAM, 0));
    if (::connect(socket.descriptor(), reinterpret_cast<const sockaddr *>(&address), size) != 0)
      std::abort();
    return socket;
  }
};

class Peer {
public:
  explicit Peer(Socket socket) : socket_(std::move(socket)) {}

  void send(std::span<const std::byte> bytes) const { (void)socket_.writeAll(bytes, ds::Patience(5s)); }
  void send(const Frame &frame) const { send(encode(frame)); }
  /// What the store says next; none when it has hung up. Aborts where it says nothing for long.
  std::optional<Frame> answer() {
    while (true) {
      if (std::optional<Frame> frame = reader_.next())
        return frame;
      pollfd wait{socket_.descriptor(), POLLIN, 0};
      if (::poll(&wait, 1, 20000) == 0)
        std::abort();
      std::array<std::byte, 4096> bytes;
      const ptrdiff_t count = socket_.readSome(bytes);
      if (count < 0)
        return std::nullopt;
      reader_.add(std::span(bytes).first(size_t(count)));
    }
  }
  void join(uint32_t rank) {
    Admission admission{.rank = rank, .ranks = 2};
    admission.ofRank = makeNonce();
    send({.kind = FrameKind::Hello, .key = key.id, .value = admission.hello()});
    const std::optional<Frame> challenge = answer();
    if (!challenge || !admission.readChallenge(challenge->value, key))
      std::abort();
    const Digest proof = admission.rankProof(key);
    send({.kind = FrameKind::Proof, .key = {}, .value = {proof.begin(), proof.end()}});
  }

private:
  Socket socket_;
  FrameReader reader_{maxAnswerBytes};
};

} // namespace

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer looks for this name
extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (size == 0)
    return 0;
  const bool isRank = data[0] % 2 == 1;
  Place place;
  const StoreServer store(place.listen(), {"store", 1}, 2, key);
  Peer honest(place.connect());
  honest.join(0);
  honest.send({.kind = FrameKind::Take, .key = "k", .value = {}, .timeout = 40ms});
  {
    Peer other(place.connect());
    if (isRank)
      other.join(1);
    other.send(std::as_bytes(std::span(data, size)).subspan(1));
  }
  const std::optional<Frame> answer = honest.answer();
  if (!answer || (answer->kind == FrameKind::Fail && !isRank))
    std::abort();
  honest.send({.kind = FrameKind::Bye, .key = {}, .value = {}});
  return 0;
}
