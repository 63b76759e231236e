// Hashes passwords in libuv's thread pool, at the cost that the functions' manuals recommend or have as default.
const crypto = require('node:crypto');

const jobs = 12;
let left = 2 * jobs;
let sum = 0;

function done(error, key) {
  if (error) throw error;
  sum += key[0];
  if (--left === 0) console.log(sum);
}

for (let i = 0; i < jobs; i++) {
  crypto.pbkdf2(`password ${i}`, 'salt', 100000, 64, 'sha512', done);
  crypto.scrypt(`password ${i}`, 'salt', 64, done);
}
