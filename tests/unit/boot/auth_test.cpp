// Keys, proofs and sealed messages.
#include "boot/auth.hpp"

#include "base/check.hpp"
#include "support/key_file.hpp"

#include <gtest/gtest.h>

namespace zerocomm::boot {
namespace {

using test::KeyFile;

std::string refusal(const std::string& path) {
  try {
    Key::read(path);
    ADD_FAILURE() << path;
    return {};
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), ZC_ARGUMENT);
    return error.what();
  }
}

void expect_part(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << part << " in " << text;
}

TEST(KeyFiles, that_others_may_read_or_that_are_no_keys_are_refused_with_what_to_do) {
  for (const mode_t mode : {0640U, 0604U, 0620U, 0700U, 0666U}) {
    const std::string text = refusal(KeyFile(std::string(32, 'k'), mode).path());
    expect_part(text, format("has mode %04o", mode));
    expect_part(text, "umask 077");
  }
  expect_part(refusal("/no/such/file"),
              "/no/such/file: No such file or directory; make one with: (umask 077; head -c 32");
  expect_part(refusal("/tmp"), "no regular file");
  expect_part(refusal(KeyFile(std::string(31, 'k')).path()), "has 31 bytes; a key has 32 to 4096");
  expect_part(refusal(KeyFile("").path()), "has 0 bytes");
  expect_part(refusal(KeyFile(std::string(4097, 'k')).path()), "has too many bytes");
  if (geteuid() == 0) {
    const KeyFile file;
    ASSERT_EQ(chown(file.path().c_str(), 65534, 65534), 0);
    expect_part(refusal(file.path()), "belongs to user 65534, this process to user 0");
  }
}

TEST(KeyFiles, of_the_same_content_are_the_same_key) {
  const KeyFile one, other, strict(std::string(32, 'k'), 0400), different(std::string(33, 'k')),
      long_one(std::string(4096, 'k'));
  const std::string fingerprint = Key::read(one.path()).fingerprint();
  EXPECT_EQ(fingerprint.size(), 8u);
  EXPECT_EQ(fingerprint.find_first_not_of("0123456789abcdef"), std::string::npos);
  EXPECT_EQ(Key::read(other.path()).fingerprint(), fingerprint);
  EXPECT_EQ(Key::read(strict.path()).fingerprint(), fingerprint);
  EXPECT_NE(Key::read(different.path()).fingerprint(), fingerprint);
  EXPECT_NE(Key::read(long_one.path()).fingerprint(), fingerprint);
}

TEST(Proofs, differ_in_everything_that_goes_into_them) {
  const KeyFile one, other(std::string(32, 'o'));
  const Key key = Key::read(one.path());
  const Nonce a = make_nonce(), b = make_nonce();
  EXPECT_FALSE(equal(a, b));
  const Tag proof = key.prove(Proof::server, "job", a, b);
  EXPECT_TRUE(equal(proof, Key::read(one.path()).prove(Proof::server, "job", a, b)));
  EXPECT_FALSE(equal(proof, Key::read(other.path()).prove(Proof::server, "job", a, b)));
  EXPECT_FALSE(equal(proof, key.prove(Proof::client, "job", a, b)));
  EXPECT_FALSE(equal(proof, key.prove(Proof::server, "job2", a, b)));
  EXPECT_FALSE(equal(proof, key.prove(Proof::server, "job", b, a)));
  EXPECT_FALSE(equal(proof, key.prove(Proof::server, "job", a, a)));
}

TEST(Seals, open_for_the_other_side_once_in_order_and_unchanged) {
  const Tag session = make_nonce();
  Seal server(session, true), client(session, false), stranger(make_nonce(), false);
  const std::vector<std::byte> message(100, std::byte{7}), second(3, std::byte{1});
  const auto sealed = server.close(message), next = server.close(second);
  EXPECT_EQ(sealed.size(), message.size() + Seal::kExtraBytes);
  EXPECT_FALSE(stranger.open(sealed));
  EXPECT_FALSE(client.open(next)) << "not yet";
  for (const std::size_t i : {std::size_t{0}, std::size_t{20}, sealed.size() - 1}) {
    auto changed = sealed;
    changed[i] ^= std::byte{1};
    EXPECT_FALSE(client.open(changed)) << i;
  }
  EXPECT_FALSE(server.open(sealed)) << "its own";
  EXPECT_EQ(client.open(sealed), message);
  EXPECT_FALSE(client.open(sealed)) << "again";
  EXPECT_EQ(client.open(next), second);
  EXPECT_FALSE(client.open({})) << "nothing";
}

}  // namespace
}  // namespace zerocomm::boot
