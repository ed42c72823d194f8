# levels: none guard sandbox
# A repository: made, filled, looked at.
import os, shutil, subprocess
if not shutil.which("git"):
    raise SystemExit("skipped: no git")
env = dict(os.environ, HOME=os.getcwd(), GIT_AUTHOR_NAME="a", GIT_AUTHOR_EMAIL="a@b", GIT_COMMITTER_NAME="a", GIT_COMMITTER_EMAIL="a@b")
def git(*words): return subprocess.run(["git", *words], env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True).stdout.strip()
git("init", "-q", "repo"); os.chdir("repo")
open("a.txt", "w").write("one\n"); git("add", "."); git("commit", "-q", "-m", "first")
open("a.txt", "a").write("two\n")
print(git("log", "--format=%s"), git("diff", "--stat").splitlines()[-1].strip())
