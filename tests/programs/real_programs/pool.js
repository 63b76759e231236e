// Hashes in libuv's thread pool, printed in the order in which they were asked for.
const crypto = require('node:crypto');
const { promisify } = require('node:util');

const pbkdf2 = promisify(crypto.pbkdf2);
const scrypt = promisify(crypto.scrypt);

async function main() {
  const jobs = [];
  for (let i = 0; i < 16; i++) {
    jobs.push(pbkdf2(`password ${i}`, 'salt', 2000, 32, 'sha256'));
    jobs.push(scrypt(`password ${i}`, 'salt', 32, { N: 256 }));
  }
  for (const key of await Promise.all(jobs)) console.log(key.toString('hex'));
  process.exitCode = 6;
}

main();
