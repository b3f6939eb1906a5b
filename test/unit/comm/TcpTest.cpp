//===- TcpTest.cpp - processes that find each other by TCP ----------------===//
//
// Each rank is a thread with a control plane of its own: they share nothing but the port. What a killed process leaves
// behind, a closed connection, is what a control plane leaves that is destroyed before finish().
//
//===----------------------------------------------------------------------===//
#include "core/Error.h"
#include "core/RunningClock.h"
#include "core/Status.h"
#include "runtime/comm/tcp/Admission.h"
#include "runtime/comm/tcp/Frame.h"
#include "runtime/comm/tcp/Socket.h"
#include "runtime/comm/tcp/TcpControlPlane.h"
#include "runtime/comm/tcp/TcpStore.h"

#include <algorithm>
#include <arpa/inet.h>
#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <gtest/gtest.h>
#include <memory>
#include <netinet/in.h>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <utility>
#include <vector>

namespace ds::runtime {
namespace {

using namespace std::chrono_literals;

/// Listens on a free port of this machine.
Socket anyPort(uint16_t &port) {
  Socket socket(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  EXPECT_EQ(::bind(socket.descriptor(), reinterpret_cast<sockaddr *>(&address), size), 0);
  EXPECT_EQ(::getsockname(socket.descriptor(), reinterpret_cast<sockaddr *>(&address), &size), 0);
  EXPECT_EQ(::listen(socket.descriptor(), 8), 0);
  port = ntohs(address.sin_port);
  return socket;
}

StoreAddress freeAddress() {
  StoreAddress address{"127.0.0.1", 0};
  const Socket closedAgain = anyPort(address.port);
  return address;
}

struct Member {
  uint32_t rank, ranks;
  RunKey key = {};
};
using Body = std::function<void(TcpControlPlane &)>;

/// Runs one member; returns the error it ended with, or "".
std::string runMember(const StoreAddress &address, Member member, std::chrono::milliseconds timeout, const Body &body) {
  try {
    TcpControlPlane plane(address, member.rank, member.ranks, timeout, member.key);
    body(plane);
    return "";
  } catch (const Error &error) {
    return error.what();
  }
}

/// Runs all of them beside each other; returns their errors.
std::vector<std::string> run(const StoreAddress &address, const std::vector<Member> &members,
                             std::chrono::milliseconds timeout, const Body &body) {
  std::vector<std::string> errors(members.size());
  std::vector<std::thread> threads;
  for (size_t i = 0; i < members.size(); ++i)
    threads.emplace_back([&, i] { errors[i] = runMember(address, members[i], timeout, body); });
  for (std::thread &thread : threads)
    thread.join();
  return errors;
}

std::vector<Member> world(uint32_t ranks, const RunKey &key = {}) {
  std::vector<Member> members;
  for (uint32_t rank = 0; rank < ranks; ++rank)
    members.push_back({rank, ranks, key});
  return members;
}

void expectNone(const std::vector<std::string> &errors) {
  for (const std::string &error : errors)
    EXPECT_EQ(error, "");
}

uint32_t rankOf(const TcpControlPlane &plane) { return plane.localRanks()[0]; }

/// Waits until another rank's failure has arrived.
std::string awaitFailure(TcpControlPlane &plane) {
  const auto text = std::make_shared<std::string>();
  const auto there = std::make_shared<std::atomic<bool>>(false);
  plane.onStop([=](const Status &status) {
    *text = status.message();
    *there = true;
  });
  for (const auto end = std::chrono::steady_clock::now() + 20s; !*there && std::chrono::steady_clock::now() < end;)
    std::this_thread::sleep_for(1ms);
  plane.onStop({});
  return *text;
}

TEST(Tcp, BringsBytesAndCollectsFlags) {
  const auto errors = run(freeAddress(), world(4), 30s, [](TcpControlPlane &plane) {
    const uint32_t rank = rankOf(plane);
    EXPECT_EQ(plane.ranks(), 4u);
    std::vector<std::byte> bytes((size_t(5) << 20) + 3, std::byte(rank));
    plane.copy(2, 0, bytes);
    plane.copy(1, 1, bytes);
    EXPECT_EQ(bytes.front(), std::byte(rank == 0 ? 2 : rank));
    EXPECT_EQ(bytes.back(), std::byte(rank == 0 ? 2 : rank));
    std::array<std::byte, 16> id{std::byte(rank)};
    for (const uint32_t to : {1u, 3u})
      plane.copy(0, to, id);
    EXPECT_EQ(id[0], std::byte(rank == 2 ? 2 : 0));
    for (uint32_t round = 0; round < 20; ++round) {
      EXPECT_FALSE(plane.anyOf(false));
      EXPECT_TRUE(plane.anyOf(rank == round % 4));
    }
    plane.requireEqual("the plan file", 77);
    plane.finish();
  });
  expectNone(errors);
}

/// Two ranks in a process that is stopped for longer than they wait for each other. The one that comes late does so by
/// the time in which the process ran.
TEST(Tcp, AProcessThatWasStoppedHasNotWaited) {
  const pid_t child = ::fork();
  if (child == 0) {
    const auto errors = run(freeAddress(), world(2), 1s, [](TcpControlPlane &plane) {
      if (rankOf(plane) == 1) {
        std::this_thread::sleep_for(100ms); // rank 0 waits
        (void)::raise(SIGSTOP);
        for (Patience patience(300ms); !patience.over();)
          std::this_thread::sleep_for(5ms);
      }
      EXPECT_FALSE(plane.anyOf(false));
      plane.finish();
    });
    expectNone(errors);
    ::_exit(testing::Test::HasFailure() ? 1 : 0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, WUNTRACED), child);
  ASSERT_TRUE(WIFSTOPPED(status));
  std::this_thread::sleep_for(1500ms);
  ASSERT_EQ(::kill(child, SIGCONT), 0);
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

TEST(Tcp, OneRankIsAWorldToo) {
  expectNone(run(freeAddress(), world(1), 30s, [](TcpControlPlane &plane) {
    EXPECT_TRUE(plane.anyOf(true));
    plane.finish();
  }));
}

TEST(Tcp, NamesRanksThatDiffer) {
  const auto errors = run(freeAddress(), world(4), 30s,
                          [](TcpControlPlane &plane) { plane.requireEqual("the plan file", rankOf(plane) % 2); });
  for (const std::string &error : errors)
    EXPECT_EQ(error, "the plan file is not the same on every rank: rank 0 differs from 1, 3; start all ranks with the "
                     "same command line and files");
}

TEST(Tcp, RefusesAPortThatIsTaken) {
  StoreAddress address{"127.0.0.1", 0};
  const Socket taken = anyPort(address.port);
  EXPECT_EQ(
      runMember(address, {0, 2}, 30s, {}),
      "rank 0 cannot listen at " + address.text() +
          " (Address already in use); MASTER_ADDR must be an address of its machine, and MASTER_PORT one that nothing "
          "else uses there");
}

/// 192.0.2.0/24 is for examples in texts. Nothing is said of the machine's other addresses, so none of them listens.
TEST(Tcp, ListensNowhereButAtMasterAddr) {
  EXPECT_EQ(
      runMember({"192.0.2.1", 29500}, {0, 2}, 30s, {}),
      "rank 0 cannot listen at 192.0.2.1:29500 (it is no address of this machine); MASTER_ADDR must be an address "
      "of its machine, and MASTER_PORT one that nothing else uses there");
  const StoreAddress address = freeAddress();
  expectNone(run(address, world(2), 30s, [&](TcpControlPlane &plane) {
    std::string reason;
    Patience patience(5s);
    EXPECT_TRUE(connectTo(address, patience, reason).open()) << reason;
    EXPECT_FALSE(connectTo({"127.0.0.2", address.port}, patience, reason).open());
    plane.finish();
  }));
}

TEST(Tcp, RefusesAHostThatNobodyKnows) {
  const std::string error = runMember({"no-such-host.invalid", 29500}, {1, 2}, 200ms, {});
  EXPECT_EQ(error.substr(0, 67), "rank 1 found no rank 0 at no-such-host.invalid:29500 within 0.2 s (") << error;
}

TEST(Tcp, DoesNotWaitForRankZeroForEver) {
  const StoreAddress address = freeAddress();
  EXPECT_EQ(runMember(address, {1, 2}, 300ms, {}),
            "rank 1 found no rank 0 at " + address.text() +
                " within 0.3 s (Connection refused); start rank 0 there, which MASTER_ADDR and MASTER_PORT name");
}

TEST(Tcp, NamesRanksThatDoNotCome) {
  for (const std::string &error : run(freeAddress(), {{0, 4}, {2, 4}}, 2s, [](TcpControlPlane &) {}))
    EXPECT_TRUE(error.ends_with("waited 2 s in all_gather of the start of the run: ranks 0, 2 arrived, ranks 1, 3 "
                                "are missing; one of those stands still or is slower than --collective-timeout allows"))
        << error;
}

TEST(Tcp, NamesARankThatStandsStill) {
  const auto errors = run(freeAddress(), world(3), 30s, [](TcpControlPlane &plane) {
    if (rankOf(plane) == 1) {
      const std::string error = awaitFailure(plane);
      EXPECT_NE(error.find("ranks 0, 2 arrived, ranks 1 are missing"), std::string::npos) << error;
      EXPECT_NE(error.find("allows; rank 1 was last heard of "), std::string::npos) << error;
      return;
    }
    plane.setTimeout(2s); // within which ranks 0 and 2 meet on any machine
    EXPECT_TRUE(plane.anyOf(false));
    (void)awaitFailure(plane);
  });
  expectNone(errors);
}

TEST(Tcp, StopsEveryRankWithTheFirstError) {
  const auto errors = run(freeAddress(), world(3), 30s, [](TcpControlPlane &plane) {
    if (rankOf(plane) == 2)
      plane.stop(Status::failure("rank 2 ran out of luck"));
    else
      EXPECT_TRUE(plane.anyOf(false));
    EXPECT_EQ(awaitFailure(plane), "rank 2 ran out of luck");
    EXPECT_TRUE(plane.anyOf(false)); // on the rank that stopped it, too
  });
  expectNone(errors);
}

TEST(Tcp, ARankThatEndsEndsTheOthers) {
  for (const uint32_t dying : {2u, 0u}) {
    const StoreAddress address = freeAddress();
    const auto errors = run(address, world(3), 30s, [&](TcpControlPlane &plane) {
      (void)plane.anyOf(false);
      if (rankOf(plane) == dying)
        return;
      EXPECT_TRUE(plane.anyOf(false));
      EXPECT_EQ(awaitFailure(plane).substr(0, 43),
                "rank " + std::to_string(dying) + " has ended, or lost its connection to");
    });
    expectNone(errors);
  }
}

TEST(Tcp, RefusesTwoRanksWithOneNumber) {
  const StoreAddress address = freeAddress();
  for (const std::string &error : run(address, {{0, 3}, {1, 3}, {1, 3}}, 30s, [](TcpControlPlane &) {}))
    EXPECT_EQ(error, "two processes say that they are rank 1 (RANK), at " + address.text() +
                         "; give each its own, and each run a port of its own");
}

TEST(Tcp, RefusesWorldsOfOtherSizes) {
  const StoreAddress address = freeAddress();
  for (const std::string &error : run(address, {{0, 2}, {1, 3}}, 30s, [](TcpControlPlane &) {}))
    EXPECT_EQ(error, "rank 1 was told of 3 ranks, but rank 0 of 2 (WORLD_SIZE), at " + address.text());
}

void sendTo(const StoreAddress &address, std::span<const std::byte> bytes) {
  std::string reason;
  Patience patience(5s);
  const Socket socket = connectTo(address, patience, reason);
  if (socket.open())
    (void)socket.writeAll(bytes, Patience(5s));
}

/// Scanners and other programs' clients knock on every port.
TEST(Tcp, DoesNotListenToStrangers) {
  const StoreAddress address = freeAddress();
  std::atomic<bool> over = false;
  std::thread stranger([&] {
    std::mt19937 random(1);
    const std::string request = "GET / HTTP/1.1\r\n\r\n";
    while (!over) {
      sendTo(address, std::as_bytes(std::span(request)));
      std::vector<std::byte> noise(random() % 200);
      for (std::byte &byte : noise)
        byte = std::byte(random());
      sendTo(address, noise);
    }
  });
  expectNone(run(address, world(3), 30s, [](TcpControlPlane &plane) {
    for (uint32_t round = 0; round < 50; ++round)
      EXPECT_EQ(plane.anyOf(round % 2 == 0), round % 2 == 0);
    plane.finish();
  }));
  over = true;
  stranger.join();
}

/// Processes of other runs and ranks that come late are told why; the run does not notice.
TEST(Tcp, RefusesWhoDoesNotBelongToTheRun) {
  const StoreAddress address = freeAddress();
  const RunKey key{"nightly", "sesame"};
  constexpr uint32_t tries = 5;
  std::atomic<uint32_t> together = 0, refused = 0;
  std::thread others([&] {
    while (together < 3) // before that, a rank of the right run is no stranger
      std::this_thread::sleep_for(1ms);
    for (; refused < tries; ++refused) {
      EXPECT_EQ(runMember(address, {1, 3, {"daily", "sesame"}}, 30s, {}),
                "rank 1 belongs to run \"daily\", but run \"nightly\" listens at " + address.text() +
                    " (DS_RUN_ID or TORCHELASTIC_RUN_ID); give each run a port of its own");
      EXPECT_EQ(runMember(address, {2, 3, {"nightly", "guess"}}, 30s, {}),
                "what listens at " + address.text() +
                    " does not know the secret of rank 2 (DS_RUN_SECRET or DS_RUN_SECRET_FILE); give all ranks the "
                    "same, and each run a port of its own");
      EXPECT_EQ(runMember(address, {1, 3, key}, 30s, {}),
                "the run at " + address.text() +
                    " has all its 3 ranks already, so one more that says that it is rank 1 was refused; give each run "
                    "a port of its own");
    }
  });
  expectNone(run(address, world(3, key), 30s, [&](TcpControlPlane &plane) {
    ++together;
    while (!plane.anyOf(rankOf(plane) == 0 && refused == tries))
      std::this_thread::sleep_for(1ms);
    plane.finish();
  }));
  others.join();
}

/// A stranger that speaks the store's language, but knows no secret.
class Stranger {
public:
  explicit Stranger(const StoreAddress &address) {
    std::string reason;
    Patience patience(5s);
    socket_ = connectTo(address, patience, reason);
  }
  void send(const Frame &frame) { (void)socket_.writeAll(encode(frame), Patience(5s)); }
  /// The next frame, or none once the store has closed the connection.
  std::optional<Frame> hear() {
    for (const auto end = std::chrono::steady_clock::now() + 5s; std::chrono::steady_clock::now() < end;) {
      if (std::optional<Frame> frame = reader_.next())
        return frame;
      std::array<std::byte, 4096> bytes;
      const ptrdiff_t count = socket_.readSome(bytes);
      if (count < 0)
        return std::nullopt;
      reader_.add(std::span(bytes).first(size_t(count)));
      std::this_thread::sleep_for(1ms);
    }
    return std::nullopt;
  }

private:
  Socket socket_;
  FrameReader reader_{maxAnswerBytes};
};

TEST(Tcp, ListensOnlyToWhoProvesToKnowTheSecret) {
  const StoreAddress address = freeAddress();
  expectNone(run(address, world(2, {"r", "sesame"}), 30s, [&](TcpControlPlane &plane) {
    if (rankOf(plane) == 0) {
      Stranger silent(address), liar(address), pusher(address);
      const Frame hello{.kind = FrameKind::Hello, .key = "r", .value = Admission{.rank = 1, .ranks = 2}.hello()};
      liar.send(hello);
      const auto challenge = liar.hear();
      EXPECT_TRUE(challenge && challenge->kind == FrameKind::Challenge);
      liar.send({.kind = FrameKind::Proof, .key = {}, .value = std::vector<std::byte>(32)});
      const auto refusal = liar.hear();
      EXPECT_TRUE(refusal && refusal->kind == FrameKind::Fail);
      liar.send({.kind = FrameKind::Proof, .key = {}, .value = std::vector<std::byte>(32)}); // no second try
      pusher.send(hello);
      EXPECT_TRUE(pusher.hear().has_value());
      pusher.send({.kind = FrameKind::Fail, .key = {}, .value = std::vector<std::byte>(8)});
      EXPECT_FALSE(pusher.hear().has_value());
    }
    EXPECT_FALSE(plane.anyOf(false));
    plane.finish();
  }));
}

/// Silent connections beyond what the store keeps do not keep ranks away.
TEST(Tcp, IsNotFilledByStrangers) {
  const StoreAddress address = freeAddress();
  std::vector<std::unique_ptr<Stranger>> crowd;
  expectNone(run(address, world(2), 30s, [&](TcpControlPlane &plane) {
    if (rankOf(plane) == 0)
      for (int i = 0; i < 300; ++i)
        crowd.push_back(std::make_unique<Stranger>(address));
    EXPECT_FALSE(plane.anyOf(false));
    plane.finish();
  }));
}

/// One rank sends without an end; the others get their turns all the same.
TEST(Tcp, ARankThatSendsFastStarvesNobody) {
  const StoreAddress address = freeAddress();
  std::atomic<bool> over = false;
  std::atomic<uint32_t> sent = 0, rounds = 0;
  const auto store = [&](uint32_t rank, const std::function<void(TcpStore &)> &body) {
    return std::thread([&, rank, body] {
      TcpStore member(address, rank, 3, {}, 30s, [](const std::string &) {});
      body(member);
      member.finish();
    });
  };
  std::vector<std::thread> threads;
  threads.push_back(store(1, [&](TcpStore &member) {
    const std::vector<std::byte> value(maxValueBytes);
    for (; !over; ++sent)
      member.put("k", value);
  }));
  for (const uint32_t rank : {0u, 2u})
    threads.push_back(store(rank, [&, rank](TcpStore &member) {
      while (sent < 4)
        std::this_thread::sleep_for(1ms);
      for (int i = 0; i < 20; ++i) {
        const std::string mine = "from " + std::to_string(rank), theirs = "from " + std::to_string(2 - rank);
        member.put(mine + std::to_string(i), {});
        (void)member.take(theirs + std::to_string(i), 2 - rank, 5s);
        if (++rounds == 40)
          over = true;
      }
    }));
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_EQ(rounds, 40u);
}

TEST(Tcp, EndsARunWhoseRankKeepsPutting) {
  const StoreAddress address = freeAddress();
  std::string failure;
  TcpStore member(address, 0, 1, {}, 30s, [](const std::string &) {});
  try {
    for (int i = 0; i < 1000; ++i)
      member.put(std::to_string(i), {});
    (void)member.take("never", 0, 5s);
  } catch (const Error &error) {
    failure = error.what();
  }
  EXPECT_EQ(failure, "rank 0 put more than 16 values into the store that nobody has taken");
}

/// One descriptor is left, and a rank's own end of its connection takes it.
TEST(Tcp, SaysThatDescriptorsHaveRunOut) {
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const StoreAddress address = freeAddress();
  std::string error;
  std::thread rankZero([&] { error = runMember(address, {0, 2}, 30s, {}); });
  std::this_thread::sleep_for(2s); // it listens, and its own connection is there
  const int lowest = ::dup(0);
  ::close(lowest);
  const rlimit tight{rlim_t(lowest) + 1, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &tight), 0);
  const Socket client(::socket(AF_INET, SOCK_STREAM, 0));
  sockaddr_in target{};
  target.sin_family = AF_INET;
  target.sin_port = htons(address.port);
  target.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_EQ(::connect(client.descriptor(), reinterpret_cast<sockaddr *>(&target), sizeof target), 0);
  rankZero.join();
  EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_EQ(error,
            "rank 0 has no file descriptors left for the connections of 2 ranks, of which 1 are there; raise the "
            "limit (ulimit -n)");
}

/// Something else listens where rank 0 should.
TEST(Tcp, NoticesThatRankZeroIsSomethingElse) {
  StoreAddress address{"127.0.0.1", 0};
  const Socket listener = anyPort(address.port);
  std::thread other([&] {
    Socket client;
    while (!client.open())
      client = acceptFrom(listener);
    const std::string answer = "HTTP/1.1 400 Bad Request\r\n\r\n";
    (void)client.writeAll(std::as_bytes(std::span(answer)), Patience(5s));
    std::this_thread::sleep_for(300ms);
  });
  EXPECT_EQ(runMember(address, {1, 2}, 10s, {}), "something answers at " + address.text() +
                                                     ", but it is no rank 0 of a ds-run; choose another MASTER_PORT, "
                                                     "the same for all ranks");
  other.join();
}

/// It accepts the connection and says nothing.
TEST(Tcp, DoesNotWaitForSilenceForEver) {
  StoreAddress address{"127.0.0.1", 0};
  const Socket listener = anyPort(address.port);
  EXPECT_EQ(runMember(address, {1, 2}, 100ms, {}),
            "rank 0 at " + address.text() +
                " has not answered rank 1 for 3.1 s; is it a ds-run of this run that listens there?");
}

} // namespace
} // namespace ds::runtime
