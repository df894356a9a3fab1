# Sourced by each command of a session.
# program NAME: its text, in sh, from stdin.
program() {
    mkdir -p "$(dirname "$1")"
    { echo '#!/bin/sh'; cat; } >"$1"
    chmod 755 "$1"
}

# A Maven that notes its arguments, and brings files of the expected names with the text "jar".
maven() {
    program bin/mvn <<'END'
echo "mvn $*" >>"$HOME/asked"
for a; do case $a in -DoutputDirectory=*) to=${a#*=} ;; esac; done
from=
grep -q '<core.version>2.7.2<' $to/pom.xml && from=daemon/jars/kcl2
grep -q '<core.version>3.5.1<' $to/pom.xml && from=daemon/jars/kcl3
grep -q DynamoDBLocal $to/pom.xml && from=local/dynamodb
[ -z $from ] || while read -r hash name; do echo jar >"$to/$name"; done <"$SOURCE/$from/SHA256SUMS"
cp $to/pom.xml $HOME
cd $to
[ ! -e $HOME/after-maven ] || . $HOME/after-maven
END
}

# A sha256sum that takes a file with the text "jar" for the published one of its name. Of all other files it tells the truth.
trust_packages() {
    program bin/sha256sum <<'END'
shift
cat "$SOURCE"/daemon/jars/*/SHA256SUMS "$SOURCE"/local/*/SHA256SUMS >"$HOME/sums"
for file; do echo "$file"; done | awk '
  FILENAME != "-" { name = substr($0, 67); if (!(name in sum)) sum[name] = $1; next }
  { name = $0; sub(/.*\//, "", name); line = ""; getline line < $0
    if (line == "jar" && name in sum) print sum[name] "  " $0
    else { fflush(); system("/usr/bin/sha256sum -- \047" $0 "\047") } }
' "$HOME/sums" -
END
}

# A JDK that notes what it compiles.
jdk() {
    program bin/javac <<<'while [ $1 != -d ]; do shift; done; mkdir $2; echo compiled >>$HOME/asked'
    program bin/jar <<'END'
case $1 in
    --list) for source in "$SOURCE"/java/*.java; do echo x/$(basename $source .java).class; done ;;
    *) echo classes >$3 ;;
esac
END
}

# The jar with what this kclxx has in src/host/java: its name has their hash.
own_jar() {
    echo "jars/kclxx-$(cd "$SOURCE/java" && sha256sum ./*.java | sed 's|\./||' | sha256sum | cut -c 1-12).jar"
}
